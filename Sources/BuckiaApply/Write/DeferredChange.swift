import SQLiteConnections

/// A change that a constraint refused, to be tried again when the others of its table are done. There can be millions.
struct DeferredChange {
  /// The offset of the change in the changeset, and two flags in the lowest bits.
  private let packed: Int

  init(offset: Int, _ refusal: SQLiteRefusal, isDecided: Bool) {
    packed = offset << 2 | (refusal.isUniqueness ? 1 : 0) | (isDecided ? 2 : 0)
  }

  /// The offset of the change in the changeset.
  var offset: Int { packed >> 2 }
  /// Whether another row has the value or the key that the change gives its own.
  var isUniqueViolation: Bool { packed & 1 != 0 }
  /// Whether it met a local row, and the incoming version is to win.
  var isDecided: Bool { packed & 2 != 0 }
}
