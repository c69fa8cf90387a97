import BuckiaLedger
import SQLiteConnections

/// The rows of a table that are otherwise here than a stream has sent them, while a diff is noted.
final class TranslatedTable {
  /// The number of what is noted of the stream; nil as long as nothing is.
  var number: Int64?
  /// For rows of which some are sent anew: the keys that they were sent with before, by their keys here.
  var sentKeys: [[UInt8]: [[UInt8]]] = [:]
  /// Whether there are any; nil until somebody has looked.
  private var isKnownToExist: Bool?

  /// - Throws: `SQLiteError`.
  init(_ vouch: VouchEntry?, on connection: borrowing SQLiteConnection) throws {
    number = vouch?.number
    if vouch == nil { isKnownToExist = false }
  }

  private var rows: TranslatedRows? { number.map { TranslatedRows(of: $0) } }

  /// Whether there are any.
  func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    if let isKnownToExist { return isKnownToExist }
    let found = try rows?.exist(on: connection) ?? false
    isKnownToExist = found
    return found
  }

  func row(_ key: [UInt8], on connection: borrowing SQLiteConnection) throws -> TranslatedRows.Row? {
    try exist(on: connection) ? rows?.row(key, on: connection) : nil
  }

  func haveRow(
    withLocal local: [UInt8], otherThan key: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try exist(on: connection) && rows?.haveRow(withLocal: local, otherThan: key, on: connection) == true
  }

  func all(on connection: borrowing SQLiteConnection) throws -> [[UInt8]: TranslatedRows.Row] {
    try exist(on: connection) ? rows?.all(on: connection) ?? [:] : [:]
  }

  func note(_ row: TranslatedRows.Row?, _ key: [UInt8], on connection: borrowing SQLiteConnection) throws {
    guard try row != nil || exist(on: connection) else { return }
    try rows?.note(row, key, on: connection)
    if row != nil { isKnownToExist = true }
  }

  func removeAll(on connection: borrowing SQLiteConnection) throws {
    guard try exist(on: connection) else { return }
    try rows?.removeAll(on: connection)
    isKnownToExist = false
  }
}
