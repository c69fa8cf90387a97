import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

@testable import BuckiaApply

@Suite struct DecodedChangeTests {
  @Test("A change is decoded as by the reader, in changesets and patchsets")
  func likeTheReader() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(
      """
      CREATE TABLE t(a, k TEXT, b, j, PRIMARY KEY(k, j));
      INSERT INTO t VALUES (1, 'x', 2.5, 1), (NULL, 'y', x'00', 2), ('', 'z', 3, 3), (4, NULL, 4, 4)
      """)
    let session = try SQLiteSession(on: connection)
    try session.attach()
    try connection.execute(
      """
      UPDATE t SET a = 'new' WHERE k = 'x'; UPDATE t SET b = NULL, a = 7 WHERE k = 'y'; DELETE FROM t WHERE k = 'z';
      INSERT INTO t VALUES (9, 'w', NULL, 0)
      """)
    let changeset = try session.changeset()
    try compare(changeset)
    try compare(patchset(of: changeset))
  }

  /// The patchset equivalent to a changeset.
  private func patchset(of changeset: [UInt8]) throws -> [UInt8] {
    try changeset.withRawSpan { bytes in
      var reader = ChangesetReader()
      var writer = ChangesetWriter()
      while let change = try reader.next(in: bytes) {
        guard let table = reader.table else { continue }
        if change.startsTable {
          writer.beginTable(ChangesetTable(name: table.name, format: .patchset, keyFlags: table.keyFlags))
        }
        writer.beginChange(change.operation)
        for column in 0..<table.columnCount {
          switch change.operation {
          case .insert: writer.append(reader.new[column], of: bytes)
          case .delete: if table.isKey(column) { writer.append(reader.old[column], of: bytes) }
          case .update: writer.append((table.isKey(column) ? reader.old : reader.new)[column], of: bytes)
          }
        }
      }
      return writer.bytes
    }
  }

  private func compare(_ bytes: [UInt8]) throws {
    try bytes.withRawSpan { span in
      var reader = ChangesetReader()
      var decoded: DecodedChange?
      var count = 0
      while let change = try reader.next(in: span) {
        guard let table = reader.table, let place = ChangePlace(at: change.range.lowerBound, in: span) else { continue }
        let taken = decoded ?? DecodedChange(of: table)
        decoded = taken
        taken.read(place, in: span)
        #expect(taken.operation == change.operation)
        #expect((0..<table.columnCount).map { taken.old($0) } == reader.old)
        #expect(taken.newRow == reader.new)
        for column in 0..<table.columnCount {
          #expect(taken.changed.contains(column) == (change.operation == .update && reader.new[column].isDefined))
          #expect(taken.compared.contains(column) == (!table.isKey(column) && reader.old[column].isDefined))
        }
        count += 1
      }
      #expect(count == 4)
    }
  }
}
