import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What the diffs of shares have said of rows, as far as the shadows of these shares still have it: who shares a row with several people one
/// after the other says the same, and not something later each time.
final class SentValues {
  private let connection: SQLiteConnection
  private let shares: [Int64: ShareEntry]
  private var shadows: [Int64: PeerShadow] = [:]
  private var sharesOfDiffs: [KSUID: Int64?] = [:]
  /// The rows that were looked up last: most columns of a row were sent by one share.
  private var last: (key: [UInt8], table: TableName, share: Int64, values: [[UInt8]?]?)?

  /// - Throws: `SQLiteError`.
  init(on connection: borrowing SQLiteConnection) throws {
    self.connection = SQLiteConnection(sharing: connection)
    shares = Dictionary(try ShareEntry.all(on: connection).map { ($0.number, $0) }) { first, _ in first }
  }

  /// Whether a diff was shared with a value, as far as is known: nothing else has been sent to the same people since.
  ///
  /// - Parameters:
  ///   - place: The column of the row.
  ///   - key: The row's key.
  func hasSent(
    _ diff: KSUID, _ place: Int, of row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> Bool {
    try values(sentBy: diff, row, bytes, key, table)?[place] == bytes.array(row[place].encoded)
  }

  /// Whether a diff was shared with another value than a row has.
  ///
  /// - Parameters: As those of ``hasSent(_:_:of:_:_:_:)``.
  func hasSentOther(
    _ diff: KSUID, _ place: Int, of row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> Bool {
    guard let value = try values(sentBy: diff, row, bytes, key, table)?[place], let number = try share(of: diff),
      shadows[number]?.placesSentAsTheyAre(of: table).contains(place) == true
    else { return false }
    return value != bytes.array(row[place].encoded)
  }

  /// The values of a row as the share of a diff has them; nil where it has none, or is not known.
  private func values(
    sentBy diff: KSUID, _ row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], _ table: KeyedTable
  ) throws -> [[UInt8]?]? {
    guard let number = try share(of: diff), let share = shares[number] else { return nil }
    if let last, last.key == key, last.table == table.name, last.share == number { return last.values }
    let shadow = try shadows[number] ?? PeerShadow(of: share, isBeforeSnapshot: true, on: connection)
    shadows[number] = shadow
    let values = try shadow.values(row, bytes, of: table)
    last = (key, table.name, number, values)
    return values
  }

  private func share(of diff: KSUID) throws -> Int64? {
    if let known = sharesOfDiffs[diff] { return known }
    let share = try OutboxEntry.share(of: diff, on: connection)
    sharesOfDiffs[diff] = .some(share)
    return share
  }
}
