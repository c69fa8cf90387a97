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
/// Two leaves with the same first key and hash have the same entries. In the b-tree of a WITHOUT ROWID table these are the rows, in any other the
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

  /// The keys of the leaves that are not among others, neighbours together.
  package static func spans(of prints: [KeyPrint], notIn others: [KeyPrint]) -> [KeySpan] {
    struct Content: Hashable {
      let first: [UInt8]?
      let hash: PageHash
    }
    let known = Set(others.map { Content(first: $0.span.lower, hash: $0.hash) })
    var spans: [KeySpan] = []
    for print in prints where !known.contains(Content(first: print.span.lower, hash: print.hash)) {
      if let last = spans.last, let end = last.upper, end == print.span.lower {
        spans[spans.count - 1] = KeySpan(from: last.lower, to: print.span.upper)
      } else {
        spans.append(print.span)
      }
    }
    return spans
  }
}
