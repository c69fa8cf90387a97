import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections

/// A change that a constraint refused, to be tried again when the others of its table are done. There can be millions.
struct DeferredChange {
  /// The offset of the change among the deferred ones, and two flags in the lowest bits.
  private let packed: Int

  init(offset: Int, _ refusal: SQLiteRefusal, isDecided: Bool) {
    packed = offset << 2 | (refusal.isUniqueness ? 1 : 0) | (isDecided ? 2 : 0)
  }

  /// The offset of the change among the deferred ones.
  var offset: Int { packed >> 2 }
  /// Whether another row has the value or the key that the change gives its own.
  var isUniqueViolation: Bool { packed & 1 != 0 }
  /// Whether it met a local row, and the incoming version is to win.
  var isDecided: Bool { packed & 2 != 0 }
}

/// Reads the deferred changes of a table one by one, in any order.
struct DeferredChangeReader {
  private let window: ChangesetWindow
  private let walk: ChangeWalk

  init(_ bytes: TemporaryBuffer, _ walk: ChangeWalk) {
    window = ChangesetWindow(bytes)
    self.walk = walk
  }

  /// Gives a change to `body`, which must not read another one.
  ///
  /// - Returns: What `body` returns; nil when no change stands there.
  /// - Throws: `ByteStreamError` when the changes cannot be read; whatever `body` throws.
  func read<Result>(_ item: DeferredChange, _ body: (ChangePlace, RawSpan) throws -> Result) throws -> Result? {
    try window.withChange(at: item.offset, walk, body)
  }
}
