import BuckiaBytes

/// The changes of one table by operation, each part in key order.
struct OperationParts {
  let deletes: TemporaryBuffer
  let updates: TemporaryBuffer
  let inserts: TemporaryBuffer

  /// Divides sorted changes; nil when some of them may depend on each other, so that their order must stay.
  ///
  /// - Parameters:
  ///   - sorter: The changes.
  ///   - rule: Which changes may depend on each other.
  ///   - source: The parts are kept as this buffer is.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Throws: `ByteStreamError` when a temporary file cannot be read or written; whatever `poll` throws.
  init?(
    _ sorter: consuming ChangeSorter, of table: ChangesetTable, _ rule: SingleChanges.Rule,
    like source: TemporaryBuffer, poll: () throws -> Void
  ) throws {
    (deletes, updates, inserts) = (source.makeEmpty(), source.makeEmpty(), source.makeEmpty())
    var sorter = sorter
    var rows = SingleChanges(of: table, rule)
    let walk = ChangeWalk(0..<0, of: table)
    while try sorter.advance() {
      try poll()
      rows.beginStretch()
      let areSingle = try sorter.bytes.withRawSpan { bytes in
        while let change = sorter.next(in: bytes) {
          guard rows.admits(change, in: bytes) else { return false }
          let part =
            switch change.operation {
            case .delete: deletes
            case .update: updates
            case .insert: inserts
            }
          try part.write(bytes.extracting(change.start..<walk.end(of: change, in: bytes)))
        }
        return true
      }
      guard areSingle else { return nil }
    }
  }
}

/// Looks, among the changes of a table in key order, for rows that are changed more than once.
struct SingleChanges {
  /// What counts as one row.
  enum Rule {
    /// Keys are compared by value: 1 and 1.0 are one key.
    case equalKeys
    /// As `equalKeys`, but for a DELETE and an INSERT of which the keys are equal and not the same bytes: a row whose key
    /// became another that compares equal. Whatever their order in the changeset, the DELETE is meant to come first.
    case equalKeysUnlessReplaced
  }

  private let key: KeyLayout
  private let rule: Rule
  private var previous: ChangePlace?
  /// Whether the previous change replaces the key of the one before it.
  private var isReplacement = false

  init(of table: ChangesetTable, _ rule: Rule) {
    key = KeyLayout(table)
    self.rule = rule
  }

  /// The changes that follow lie in other bytes. Those with equal keys lie together.
  mutating func beginStretch() {
    previous = nil
    isReplacement = false
  }

  /// Takes the next change.
  ///
  /// - Returns: false when its row is changed by the one before, too.
  mutating func admits(_ change: ChangePlace, in bytes: RawSpan) -> Bool {
    defer { previous = change }
    guard let previous, key.order(previous.start, change.start, in: bytes) == 0 else {
      isReplacement = false
      return true
    }
    let operations = (previous.operation, change.operation)
    guard rule == .equalKeysUnlessReplaced, !isReplacement,
      operations == (.delete, .insert) || operations == (.insert, .delete),
      !key.isSame(previous.start, change.start, in: bytes)
    else { return false }
    isReplacement = true
    return true
  }
}
