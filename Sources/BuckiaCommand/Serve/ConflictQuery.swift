import Buckia

/// Which conflicts a page shows, as its address says.
struct ConflictQuery: Equatable {
  var table: String?
  var diff: String?
  var kind: ConflictKind?
  /// Whether those are shown, too, that somebody has decided about.
  var includesDecided = false
  /// Only those before this one: where the page before has ended.
  var before: Int64?

  init() {}

  /// - Returns: nil for a query that none of our pages has made.
  init?(_ fields: FormFields) {
    table = fields["table"]
    diff = fields["diff"]
    if let word = fields["kind"] {
      guard let kind = ConflictKind(rawValue: word) else { return nil }
      self.kind = kind
    }
    if let word = fields["state"] {
      guard word == "all" else { return nil }
      includesDecided = true
    }
    if let word = fields["before"] {
      guard let number = Int64(word), number > 0 else { return nil }
      before = number
    }
  }

  /// The query of the address.
  var fields: [(name: String, value: String)] {
    var fields: [(name: String, value: String)] = []
    if let table { fields.append(("table", table)) }
    if let diff { fields.append(("diff", diff)) }
    if let kind { fields.append(("kind", kind.rawValue)) }
    if includesDecided { fields.append(("state", "all")) }
    if let before { fields.append(("before", "\(before)")) }
    return fields
  }

  /// The same with something else in it, from the first page on.
  func with(_ change: (inout ConflictQuery) -> Void) -> ConflictQuery {
    var query = self
    query.before = nil
    change(&query)
    return query
  }

  /// Which conflicts are on the page, and on those behind it.
  var filter: ConflictFilter {
    var filter = ConflictFilter()
    filter.table = table
    filter.diff = diff
    filter.kind = kind
    filter.isOpen = !includesDecided
    if let before { filter.numbers = .min...(before - 1) }
    return filter
  }
}
