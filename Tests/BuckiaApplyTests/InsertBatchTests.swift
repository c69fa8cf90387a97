import ReplicationTestSupport
import Testing

@testable import BuckiaApply

@Suite struct InsertBatchTests {
  /// The sizes of the statements that insert the waiting rows.
  private func sizes(_ batch: InsertBatch) -> [Int] {
    var sizes: [Int] = []
    var next = 0
    while next < batch.count {
      sizes.append(batch.rows(from: next))
      next += sizes[sizes.count - 1]
    }
    return sizes
  }

  private func filled(_ count: Int, columns: Int = 5, limit: Int = 32_766) -> InsertBatch {
    var batch = InsertBatch(columns: columns, limit: limit)
    for start in 0..<count { batch.add(start) }
    return batch
  }

  @Test("Rows are inserted in the largest sizes that fit")
  func sizes() {
    #expect(sizes(filled(32)) == [32])
    #expect(sizes(filled(20)) == [8, 8, 1, 1, 1, 1])
    #expect(sizes(filled(3)) == [1, 1, 1])
    #expect(filled(32).isFull)
    #expect(!filled(31).isFull)
  }

  @Test("Wide tables and connections with a low limit have smaller batches or none")
  func width() {
    #expect(sizes(filled(20, columns: 40)) == [8, 8, 1, 1, 1, 1])
    #expect(!InsertBatch(columns: 100, limit: 32_766).isUsed)
    #expect(!InsertBatch(columns: 1, limit: 7).isUsed)
    #expect(!InsertBatch(columns: 1, limit: 1).isUsed)
    #expect(sizes(filled(8, columns: 2, limit: 20)) == [8])
  }

  @Test("After a refusal rows are inserted alone, longer while refusals continue, and then in batches again")
  func pause() {
    var batch = filled(32)
    batch.noteRefusal(of: 32)
    for round in 0..<3 {
      #expect(sizes(batch) == [Int](repeating: 1, count: 32), "round \(round)")
      for row in 0..<32 { batch.noteSingle(wasRefused: row == 5) }
    }
    for _ in 0..<32 { batch.noteSingle(wasRefused: false) }
    #expect(sizes(batch) == [32])
    batch.noteRefusal(of: 32)
    batch.noteRefusal(of: 32)
    for _ in 0..<63 { batch.noteSingle(wasRefused: true) }
    #expect(sizes(batch).first == 1)
  }
}

@Suite struct ColumnMaskTests {
  @Test("A mask contains the inserted columns, and equality does not depend on their order")
  func membership() {
    var one = ColumnMask()
    var other = ColumnMask()
    let columns = [0, 5, 63, 64, 127, 128, 1_999]
    for column in columns { one.insert(column) }
    for column in columns.reversed() {
      other.insert(column)
      other.insert(column)
    }
    #expect(one == other && one.hashValue == other.hashValue)
    #expect((0..<2_100).filter { one.contains($0) } == columns)
    #expect(!one.isEmpty && ColumnMask().isEmpty)
    other.insert(65)
    #expect(one != other)
  }
}
