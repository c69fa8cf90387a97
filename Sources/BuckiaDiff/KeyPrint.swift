import SQLiteFiles

/// The keys from one on, up to another.
package struct KeySpan: Hashable, Sendable {
  /// The first key, its values in the format of changesets; nil for no lower bound.
  package let lower: [UInt8]?
  /// The key that is none of them any more; nil for no upper bound.
  package let upper: [UInt8]?

  package init(from lower: [UInt8]?, to upper: [UInt8]?) {
    self.lower = lower
    self.upper = upper
  }
}

/// A leaf of the b-tree by which rows are found by their primary key: what its entries are, in short.
///
/// Two leaves with the same hash have the same entries. In the b-tree of a WITHOUT ROWID table these are the rows, in any other the
/// keys with the rowids of their rows.
package struct KeyPrint: Hashable, Sendable {
  /// The keys that it stands for.
  package let span: KeySpan
  /// A keyed hash of its entries.
  package let hash: PageHash

  package init(span: KeySpan, hash: PageHash) {
    self.span = span
    self.hash = hash
  }

  /// The keys of the leaves that are not in both of two lists: of the first, and of the second; neighbours together.
  ///
  /// - Returns: nil where so many leaves have changed that it is faster to look at all rows.
  package static func differences(
    of older: [KeyPrint], _ newer: [KeyPrint]
  ) -> (older: [KeySpan], newer: [KeySpan])? {
    // The entry before a leaf is in its hash, so that tells the first key, too.
    let before = Set(older.map(\.hash))
    guard isFew(newer.count { !before.contains($0.hash) }, of: newer.count) else { return nil }
    let now = Set(newer.map(\.hash))
    return (spans(of: older) { !now.contains($0) }, spans(of: newer) { !before.contains($0) })
  }

  /// Whether leaves that have changed are so few that their rows are compared by themselves.
  package static func isFew(_ changed: Int, of all: Int) -> Bool { changed <= all / 8 + 8 }

  private static func spans(of prints: [KeyPrint], where isWanted: (PageHash) -> Bool) -> [KeySpan] {
    var spans: [KeySpan] = []
    for print in prints where isWanted(print.hash) {
      if let last = spans.last, let end = last.upper, end == print.span.lower {
        spans[spans.count - 1] = KeySpan(from: last.lower, to: print.span.upper)
      } else {
        spans.append(print.span)
      }
    }
    return spans
  }
}
