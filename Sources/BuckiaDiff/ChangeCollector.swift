import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// Gathers the changes of one table by operation, so that its DELETEs are written before its UPDATEs before its INSERTs.
final class ChangeCollector {
  private struct Section {
    var writer = ChangesetWriter()
    let spool = TemporaryBuffer()
    var count = 0

    mutating func endChange() throws {
      count += 1
      if writer.count >= 1 << 20 { try flush() }
    }

    mutating func flush() throws {
      try spool.write(writer.bytes)
      writer.removeAll()
    }
  }

  private let encoder: ChangeEncoder
  private var deletes = Section()
  private var updates = Section()
  private var inserts = Section()

  var deleted: Int { deletes.count }
  var updated: Int { updates.count }
  var inserted: Int { inserts.count }
  var isEmpty: Bool { deleted + updated + inserted == 0 }

  init(of table: TableDefinition) { encoder = ChangeEncoder(of: table) }

  /// Adds the DELETE or the INSERT of a row.
  func add<Row: RowValues & ~Copyable>(_ operation: ChangeOperation, _ row: borrowing Row) throws {
    try add(operation) { writer in try encoder.append(row, to: &writer) }
  }

  /// Adds the UPDATE that makes a row another of the same key, if they differ.
  @inline(__always)
  func addUpdate<Row: RowValues & ~Copyable>(from old: borrowing Row, to new: borrowing Row) throws {
    guard try encoder.compare(old, new) else { return }
    try add(.update) { writer in try encoder.appendUpdate(from: old, to: new, in: &writer) }
  }

  /// Adds a change whose values are encoded already.
  func add(_ operation: ChangeOperation, encoded values: UnsafeRawBufferPointer) throws {
    try add(operation) { $0.append(encoded: values) }
  }

  private func add(_ operation: ChangeOperation, _ body: (inout ChangesetWriter) throws -> Void) throws {
    func add(to section: inout Section) throws {
      section.writer.beginChange(operation)
      try body(&section.writer)
      try section.endChange()
    }
    switch operation {
    case .delete: try add(to: &deletes)
    case .update: try add(to: &updates)
    case .insert: try add(to: &inserts)
    }
  }

  /// Appends a table header and all changes.
  func finish(_ table: ChangesetTable, into output: TemporaryBuffer) throws {
    guard !isEmpty else { return }
    var header = ChangesetWriter()
    header.beginTable(table)
    try output.write(header.bytes)
    func append(_ section: inout Section) throws {
      try section.flush()
      try output.write(contentsOf: section.spool)
    }
    try append(&deletes)
    try append(&updates)
    try append(&inserts)
  }
}
