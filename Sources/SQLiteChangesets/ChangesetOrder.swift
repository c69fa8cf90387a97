/// A better order for the changes of a changeset: by table, operation and key.
///
/// The session extension emits changes in hash order, the slowest there is to apply: every row touches another page.
/// In key order neighbours share pages. Tables keep the order of their first appearance, and the sections of a table
/// become one. Inside a table come deletes, then updates, then inserts, each by primary key: NULL, numbers, text,
/// blobs; composite keys in the order of the key's definition where the header tells it.
///
/// A table in which two changes have equal keys (joined changesets, 1 beside 1.0, NULL in the key) stays in author's
/// order, since such changes may depend on each other: the result always has the effect of the input.
///
/// ```swift
/// let order = try ChangesetOrder(byKeyOf: bytes)
/// try order.write(bytes, into: spool)
/// let annotations = order.ordinals.map { annotation[$0] }
/// ```
public struct ChangesetOrder: Sendable {
  /// The tables that stay in author's order.
  public private(set) var tablesInAuthorOrder: [ChangesetTable] = []

  private struct Section: Sendable {
    let header: [UInt8]
    let changes: [Place]
  }

  private struct Place: Sendable {
    let range: Range<Int>
    let ordinal: Int
  }

  private var sections: [Section] = []
  private let byteCount: Int

  /// Finds the order.
  ///
  /// Takes memory for each change (about 100 bytes at most), however large it is.
  ///
  /// - Parameters:
  ///   - bytes: The changeset or patchset.
  ///   - isSorted: Which tables are put in order; the others stay in author's order.
  /// - Throws: `ChangesetError` when the bytes are no changeset, or one table appears with different columns or keys.
  public init(
    byKeyOf bytes: RawSpan, where isSorted: (ChangesetTable) -> Bool = { _ in true }
  ) throws(ChangesetError) {
    byteCount = bytes.byteCount
    var index = try ChangesetIndex(of: bytes)
    for place in index.tables.indices {
      var table = index.take(place)
      table.sortByKey(in: bytes)
      let entries: [ChangesetIndex.Entry]
      let staysInAuthorOrder =
        !isSorted(table.table)
        || table.entries.indices.dropFirst().contains { table.haveEqualKeys($0 - 1, $0, in: bytes) }
      if staysInAuthorOrder {
        tablesInAuthorOrder.append(table.table)
        entries = table.entries.sorted { $0.ordinal < $1.ordinal }
      } else {
        entries = [.delete, .update, .insert].flatMap { (operation: ChangeOperation) in
          table.entries.filter { bytes.byte(at: $0.start) == operation.rawValue }
        }
      }
      sections.append(
        Section(
          header: table.header,
          changes: entries.map { Place(range: $0.start..<$0.end, ordinal: $0.ordinal) }))
    }
  }

  /// The permutation: at each place of the new order, which change of the input stands there, counted from 0 in file
  /// order. What is annotated by ordinal can be carried along with it.
  public var ordinals: [Int] { sections.flatMap { $0.changes.map(\.ordinal) } }

  /// Whether the changes are in this order already.
  public var isIdentity: Bool {
    var next = 0
    for section in sections {
      for change in section.changes {
        guard change.ordinal == next else { return false }
        next += 1
      }
    }
    return true
  }

  /// Writes the changes in this order.
  ///
  /// - Parameters:
  ///   - bytes: The very bytes that the order was found for.
  ///   - output: Where the result is added.
  /// - Throws: `ChangesetError` with code `badLength` when the bytes are not as many as they were,
  ///   `ChangesetSpool.Failure` when the output cannot be written; it may then hold a part of the result.
  public func write(_ bytes: RawSpan, into output: ChangesetSpool) throws {
    guard bytes.byteCount == byteCount else { throw ChangesetError(.badLength, offset: bytes.byteCount) }
    for section in sections {
      try output.append(section.header)
      var run = 0..<0
      for change in section.changes {
        // Neighbours go out together: what is sorted already is copied in one piece.
        if change.range.lowerBound == run.upperBound {
          run = run.lowerBound..<change.range.upperBound
        } else {
          try output.append(run, of: bytes)
          run = change.range
        }
      }
      try output.append(run, of: bytes)
    }
  }
}

extension ChangesetOrder {
  /// Whether the changes of each table stand in this order already: one pass, without memory for each change.
  ///
  /// - Parameters:
  ///   - bytes: The changeset or patchset.
  ///   - matters: Which tables are looked at.
  /// - Throws: `ChangesetError` when the bytes are no changeset.
  public static func isByKey(
    _ bytes: RawSpan, where matters: (ChangesetTable) -> Bool = { _ in true }
  ) throws(ChangesetError) -> Bool {
    var reader = ChangesetReader()
    var key: KeyLayout?
    var previous: Change?
    while let change = try reader.next(in: bytes) {
      if change.startsTable {
        key = reader.table.flatMap { matters($0) ? KeyLayout($0) : nil }
        previous = nil
      }
      if let key, let previous {
        let (before, now) = (Self.rank(previous.operation), Self.rank(change.operation))
        guard before <= now else { return false }
        if before == now, key.order(previous.range.lowerBound, change.range.lowerBound, in: bytes) > 0 { return false }
      }
      previous = change
    }
    return true
  }

  private static func rank(_ operation: ChangeOperation) -> Int {
    switch operation {
    case .delete: 0
    case .update: 1
    case .insert: 2
    }
  }
}

extension Changesets {
  /// Sorts a changeset or patchset by table, operation and key; see ``ChangesetOrder``.
  ///
  /// - Parameters:
  ///   - bytes: The changeset or patchset.
  ///   - output: Where the result is added.
  /// - Returns: `output`.
  /// - Throws: `ChangesetError` when the bytes are no changeset, or one table appears with different columns or keys;
  ///   `ChangesetSpool.Failure` when the output cannot be written. The output may then hold a part of the result.
  @discardableResult
  public static func sorted(
    _ bytes: RawSpan, into output: ChangesetSpool = ChangesetSpool()
  ) throws -> ChangesetSpool {
    try ChangesetOrder(byKeyOf: bytes).write(bytes, into: output)
    return output
  }
}
