import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Gathers the changes of one table in three heaps, so that deletes come out before updates before inserts.
final class ChangeCollector {
  private struct Heap {
    var writer = ChangesetWriter()
    let spool = ChangesetSpool()
    var count = 0
  }

  private static let flushLimit = 1 << 20
  private var deletes = Heap()
  private var updates = Heap()
  private var inserts = Heap()

  var deleted: Int { deletes.count }
  var updated: Int { updates.count }
  var inserted: Int { inserts.count }
  var isEmpty: Bool { deleted + updated + inserted == 0 }

  /// Writes one change with `body`, which gives every value.
  func add(_ operation: ChangeOperation, _ body: (inout ChangesetWriter) throws -> Void) throws {
    switch operation {
    case .delete: try Self.add(operation, to: &deletes, body)
    case .update: try Self.add(operation, to: &updates, body)
    case .insert: try Self.add(operation, to: &inserts, body)
    }
  }

  private static func add(
    _ operation: ChangeOperation, to heap: inout Heap, _ body: (inout ChangesetWriter) throws -> Void
  ) throws {
    heap.writer.beginChange(operation)
    try body(&heap.writer)
    heap.count += 1
    if heap.writer.count >= flushLimit { try flush(&heap) }
  }

  private static func flush(_ heap: inout Heap) throws {
    try heap.spool.append(heap.writer.bytes)
    heap.writer.removeAll()
  }

  /// Appends a table header and all changes.
  func finish(_ table: ChangesetTable, into output: ChangesetSpool) throws {
    guard !isEmpty else { return }
    var header = ChangesetWriter()
    header.beginTable(table)
    try output.append(header.bytes)
    try Self.flush(&deletes)
    try output.append(contentsOf: deletes.spool)
    try Self.flush(&updates)
    try output.append(contentsOf: updates.spool)
    try Self.flush(&inserts)
    try output.append(contentsOf: inserts.spool)
  }
}
