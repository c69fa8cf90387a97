import BuckiaLedger
import Dispatch

/// Compresses what a large diff does, in a thread of its own, while its rows are being written.
final class EffectCompressor: @unchecked Sendable {
  /// How many pieces may wait.
  private static let capacity = 8

  private let queue = DispatchQueue(label: "buckia.effects")
  private let room = DispatchSemaphore(value: capacity)
  // Touched on the queue only, which does one thing after the other.
  private var blocks: [Result<EffectBlock, any Error>] = []

  /// Takes the next piece. It waits when too many are there.
  func add(_ piece: EffectBlock.Piece) {
    room.wait()
    queue.async {
      self.blocks.append(Result { try EffectBlock([piece]) })
      self.room.signal()
    }
  }

  /// Takes back what was added last.
  ///
  /// - Parameter size: How many bytes of changes stay.
  /// - Returns: Those bytes that belong to a block of which not all stays; that block is taken back whole.
  func rewind(to size: Int) throws -> [UInt8] {
    try queue.sync {
      var start = 0
      for (index, result) in blocks.enumerated() {
        let block = try result.get()
        guard start + block.size > size else {
          start += block.size
          continue
        }
        blocks.removeLast(blocks.count - index)
        return try Array(block.pieces().flatMap(\.changes).prefix(size - start))
      }
      return []
    }
  }

  /// Waits until everything is compressed.
  ///
  /// - Returns: All blocks, each of one piece.
  func finish() throws -> [EffectBlock] { try queue.sync { try blocks.map { try $0.get() } } }
}
