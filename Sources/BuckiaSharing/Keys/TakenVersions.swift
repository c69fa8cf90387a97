import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The versions of rows that were last taken from the streams of others: their hashes, as these streams have sent them.
final class TakenVersions {
  /// What is looked up of a stream's rows of a table once.
  private struct Stream {
    /// The columns that the stream has, in lower case; nil where that is not known.
    let columns: Set<String>?
    let hasUntaken: Bool
    let hasTranslated: Bool
  }

  /// Stands for the version of a row of which none was taken.
  private static let none: UInt64 = 0

  private let connection: SQLiteConnection
  private var streams: [VouchEntry: Stream] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  private func stream(_ entry: VouchEntry) throws -> Stream {
    if let known = streams[entry] { return known }
    let state = try StateEntry.all(on: connection).first {
      $0.owner == .sender(entry.sender) && $0.stream == entry.stream && $0.table == entry.table
    }
    let found = Stream(
      columns: try state.map { Set(try TableState($0, at: connection.path).columns.map { ASCIIName.folded($0) }) },
      hasUntaken: try UntakenRows(of: entry.number).exist(on: connection),
      hasTranslated: try TranslatedRows(of: entry.number).exist(on: connection))
    streams[entry] = found
    return found
  }

  /// The version of a row that was taken from a stream last.
  ///
  /// - Parameters:
  ///   - brought: What the stream has said of the row last.
  ///   - key: The row's key here, in the format of changesets.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func taken(from entry: VouchEntry, _ brought: VouchedRow, _ key: [UInt8]) throws -> UInt64 {
    let stream = try stream(entry)
    let translated =
      try stream.hasTranslated ? TranslatedRows(of: entry.number).hash(ofLocal: key, on: connection) : nil
    switch try stream.hasUntaken ? UntakenRows(of: entry.number).version(of: key, on: connection) : nil {
    case nil: return translated ?? brought.hash
    case UntakenRows.Version.none?: return Self.none
    // What was kept is the hash of the row here, which is another one where keys differ.
    case .hash(let hash)?: return translated == nil ? hash : Self.none
    }
  }

  /// The same where a row is another one now; nil where it is not.
  ///
  /// - Parameters:
  ///   - row: The row as it is sent.
  ///   - table: Its table, as it is sent.
  /// - Throws: As ``taken(from:_:_:)``.
  func changed(
    since entry: VouchEntry, _ brought: VouchedRow, _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable
  ) throws -> UInt64? {
    let stream = try stream(entry)
    var hash = StreamRowHash()
    for (place, column) in table.columns.enumerated()
    where row[place].isDefined && stream.columns?.contains(ASCIIName.folded(column)) ?? true {
      hash.add(row[place], bytes, table.seeds[place])
    }
    if !stream.hasUntaken, hash.value == brought.hash { return nil }
    let key = table.key(row, bytes)
    let isTaken = try !stream.hasUntaken || UntakenRows(of: entry.number).version(of: key, on: connection) == nil
    return try isTaken && hash.value == brought.hash ? nil : taken(from: entry, brought, key)
  }
}
