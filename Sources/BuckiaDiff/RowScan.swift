import SQLiteChangesets
import SQLiteConnections

/// The rows of a query, in its order.
///
/// SQLite gives as many results as a table may have columns, and no more. A table of 2,000 columns that goes by rowid has
/// one value too many, so there can be a second query for the end of each row, in the same order.
struct RowScan: ~Copyable {
  private final class Rest {
    let statement: SQLiteStatement
    init(_ statement: consuming SQLiteStatement) { self.statement = statement }
  }

  /// Half surrogate pairs, which nobody sees any more once SQLite has converted a value to UTF-8.
  private final class Surrogates {
    /// The columns of the row in hand that hold any, and those that were written into changes.
    var present: Set<Int> = []
    var written: Set<Int> = []
  }

  private let statement: SQLiteStatement
  private let rest: Rest?
  /// How many values the first query gives.
  private let width: Int
  /// What is found in a database that stores text as UTF-16; nil for others.
  private let surrogates: Surrogates?

  /// Prepares a query.
  ///
  /// - Parameters:
  ///   - results: What it gives, as SQL.
  ///   - source: What follows behind the results. Its order must be that of a key.
  ///   - isUTF16: Whether the database stores text as UTF-16.
  init(_ results: [String], _ source: String, isUTF16: Bool, on connection: borrowing SQLiteConnection) throws {
    let first = results.prefix(connection.columnLimit)
    let others = results.dropFirst(first.count)
    let rest = others.isEmpty ? nil : Rest(try connection.prepare("SELECT \(others.joined(separator: ", ")) \(source)"))
    let statement = try connection.prepare("SELECT \(first.joined(separator: ", ")) \(source)")
    self.init(statement, rest, width: first.count, isUTF16 ? Surrogates() : nil)
  }

  private init(_ statement: consuming SQLiteStatement, _ rest: Rest?, width: Int, _ surrogates: Surrogates?) {
    self.statement = statement
    self.rest = rest
    self.width = width
    self.surrogates = surrogates
  }

  /// The columns with text that is no valid UTF-16, and was written into changes as SQLite converts it.
  var brokenText: Set<Int> { surrogates?.written ?? [] }

  /// Goes on to the next row.
  func step() throws -> Bool {
    if let rest { _ = try rest.statement.step() }
    guard try statement.step() else { return false }
    if let surrogates { look(for: surrogates) }
    return true
  }

  private func look(for surrogates: Surrogates) {
    surrogates.present.removeAll()
    for column in 0..<statement.columnCount where statement.hasUnpairedSurrogate(at: column) {
      surrogates.present.insert(column)
    }
    guard let rest else { return }
    for column in 0..<rest.statement.columnCount where rest.statement.hasUnpairedSurrogate(at: column) {
      surrogates.present.insert(column + width)
    }
  }

  @inline(__always)
  func storageClass(at index: Int) -> StorageClass {
    index < width ? statement.storageClass(at: index) : end(index, else: .null) { $0.storageClass(at: $1) }
  }

  @inline(__always)
  func integer(at index: Int) -> Int64 {
    index < width ? statement.integer(at: index) : end(index, else: 0) { $0.integer(at: $1) }
  }

  @inline(__always)
  func real(at index: Int) -> Double {
    index < width ? statement.real(at: index) : end(index, else: 0) { $0.real(at: $1) }
  }

  @inline(__always)
  func textBytes(at index: Int) -> UnsafeRawBufferPointer {
    index < width
      ? statement.textBytes(at: index)
      : end(index, else: UnsafeRawBufferPointer(start: nil, count: 0)) { $0.textBytes(at: $1) }
  }

  @inline(__always)
  func blobBytes(at index: Int) -> UnsafeRawBufferPointer {
    index < width
      ? statement.blobBytes(at: index)
      : end(index, else: UnsafeRawBufferPointer(start: nil, count: 0)) { $0.blobBytes(at: $1) }
  }

  /// A value of the second query.
  @inline(never)
  private func end<Value>(
    _ index: Int, else nothing: Value, _ read: (borrowing SQLiteStatement, Int) -> Value
  ) -> Value {
    guard let rest else { return nothing }
    return read(rest.statement, index - width)
  }

  /// Adds a value to a change.
  func append(_ index: Int, to writer: inout ChangesetWriter) {
    if let surrogates, surrogates.present.contains(index) { surrogates.written.insert(index) }
    if index >= width, let rest {
      writer.append(column: index - width, of: rest.statement)
    } else {
      writer.append(column: index, of: statement)
    }
  }
}
