import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

extension InspectedFile {
  /// A change as people see it.
  public struct ShownChange: Sendable {
    /// A column and its value; the value is nil where the change says nothing of it.
    ///
    /// Of a long text or blob in a change of more than 8 MiB, the value is only a part, and `whole` is where all of it is.
    public typealias Cell = (column: String, value: ChangesetValue?, whole: LongValue?)
    /// The table.
    public let table: String
    /// What happens to the row.
    public let operation: ChangeOperation
    /// The row's key.
    public let key: [Cell]
    /// The row before; nil for an INSERT. An UPDATE tells the key and what changes.
    public let old: [Cell]?
    /// The row after; nil for a DELETE. An UPDATE tells what changes.
    public let new: [Cell]?
  }

  /// Gives every change to `body`, in the order of the file.
  ///
  /// A change takes up little memory, also where its values are long: see ``LongValue``.
  ///
  /// - Throws: `BuckiaError`; whatever `body` throws.
  public func forEachChange(_ body: (ShownChange) throws -> Void) throws {
    try BuckiaError.wrapping { try forEachVerifiedChange(body) }
  }

  private func forEachVerifiedChange(_ body: (ShownChange) throws -> Void) throws {
    var scan = ChangesetScan(changeset)
    var columns: [String] = []
    while try scan.advance() {
      try scan.window.withBytes { bytes in
        while let change = try scan.next(in: bytes) {
          guard let table = scan.reader.table else { continue }
          if change.startsTable { columns = Self.columns(of: table, in: schema) }
          var key: [ShownChange.Cell] = []
          var old: [ShownChange.Cell] = []
          var new: [ShownChange.Cell] = []
          for index in columns.indices {
            var before = cell(columns[index], scan.reader.old[index], scan, bytes)
            var after = cell(columns[index], scan.reader.new[index], scan, bytes)
            if table.isKey(index) { key.append(before.value == nil ? after : before) }
            try showDifference(&before, &after)
            old.append(before)
            new.append(after)
          }
          try body(
            ShownChange(
              table: table.name, operation: change.operation, key: key, old: change.operation == .insert ? nil : old,
              new: change.operation == .delete ? nil : new))
        }
      }
    }
  }

  private func cell(
    _ column: String, _ value: ValueSlice, _ scan: ChangesetScan, _ bytes: RawSpan
  ) -> ShownChange.Cell {
    (column, ChangesetValue(value, in: bytes), scan.longValue(value).map { LongValue(range: $0, shownFrom: 0) })
  }

  /// The names of the columns; numbers from 1 where the file has no definitions.
  static func columns(of table: ChangesetTable, in schema: [TableDefinition]?) -> [String] {
    let definition = schema?.first { ASCIIName.matches($0.name, table.name) }
    guard let names = definition?.changesetColumns, names.count == table.columnCount else {
      return (1...table.columnCount).map { "column \($0)" }
    }
    return names
  }
}
