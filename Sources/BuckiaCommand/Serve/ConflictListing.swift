import Buckia

/// A page of conflicts, with the possible actions.
struct ConflictListing {
  let database: ServedDatabase
  let site: PageSite
  let query: ConflictQuery

  private var manager: DatabaseManager { database.manager }

  /// Writes the page.
  func write(on page: PageWriter) throws {
    let filter = query.filter
    let found = try manager.conflictCounts(matching: filter)
    let total = found.total
    var first: Int64?
    try manager.forEachConflict(matching: filter, newest: ServedDatabase.conflictsOnPage) { first = first ?? $0.id }
    var limits = database.limits
    limits.entries = ServedDatabase.conflictsOnPage
    let listing = ConflictsPage(
      of: manager, name: database.name, filter: filter, found: found, limits: limits, on: page)
    let forms = ConflictForms(database: database, query: query)
    let isReadOnly = database.isReadOnly
    var end = pages(from: first, total)
    end += try all(forms)
    listing.service = ConflictsPage.Service(
      site: site, actions: { isReadOnly ? nil : forms.short($0) }, introduction: try choices(), end: end)
    _ = try listing.write()
  }

  // MARK: Which conflicts

  /// Links to the same page with more or fewer conflicts.
  private func choices() throws -> Markup {
    var markup: Markup = "<section aria-labelledby=\"choices\">\n<h2 id=\"choices\">Which conflicts</h2>\n"
    var links = [
      link("open", query.with { $0.includesDecided = false }, isCurrent: !query.includesDecided),
      link("decided ones, too", query.with { $0.includesDecided = true }, isCurrent: query.includesDecided),
    ]
    if let diff = query.diff {
      links.append(link("of all files, not only \(diff.prefix(27))", query.with { $0.diff = nil }, isCurrent: false))
    }
    markup += Self.line(links)
    let wide = query.with { ($0.table, $0.kind) = (nil, nil) }
    let found = try manager.conflictCounts(matching: wide.filter)
    var tables: [String] = []
    for entry in found where !tables.contains(where: { TableName($0) == TableName(entry.table) }) {
      tables.append(entry.table)
    }
    if tables.count > 1 || query.table != nil {
      markup += Self.line(
        [link("all tables", query.with { $0.table = nil }, isCurrent: query.table == nil)]
          + tables.prefix(Self.tableLimit).map { table in
            let isCurrent = query.table.map { TableName($0) == TableName(table) } ?? false
            return link(table, query.with { $0.table = table }, isCurrent: isCurrent)
          })
    }
    let kinds = ConflictKind.allCases.filter { kind in found.contains { $0.kind == kind } }
    if kinds.count > 1 || query.kind != nil {
      markup += Self.line(
        [link("all kinds", query.with { $0.kind = nil }, isCurrent: query.kind == nil)]
          + kinds.map { kind in link(kind.rawValue, query.with { $0.kind = kind }, isCurrent: query.kind == kind) })
    }
    markup += "</section>\n"
    return markup
  }

  private static let tableLimit = 100

  private static func line(_ links: [Markup]) -> Markup {
    "<p class=\"choices\">\(Markup(links) { "\($0) " })</p>\n"
  }

  private func link(_ name: String, _ query: ConflictQuery, isCurrent: Bool) -> Markup {
    let current: Markup = isCurrent ? " aria-current=\"true\"" : ""
    return "<a href=\"\(database.address("conflicts", query.fields))\"\(current)>\(name)</a>"
  }

  // MARK: Behind the conflicts

  /// The links to the previous and next page.
  private func pages(from first: Int64?, _ total: Int) -> Markup {
    var links: [Markup] = []
    if query.before != nil { links.append(link("The newest conflicts", query.with { _ in }, isCurrent: false)) }
    let left = total - ServedDatabase.conflictsOnPage
    if left > 0, let first {
      let name = "Earlier conflicts (\(left.grouped))"
      links.append(link(name, query.with { $0.before = first }, isCurrent: false))
    }
    return links.isEmpty ? "" : Self.line(links)
  }

  private func all(_ forms: ConflictForms) throws -> Markup {
    guard !database.isReadOnly, !query.includesDecided else { return "" }
    let filter = query.with { _ in }.filter
    let count = try manager.conflictCounts(matching: filter).total
    guard count > 1 else { return "" }
    var newest: Int64 = 0
    var isOfMerge = true
    try manager.forEachConflict(matching: filter, newest: ServedDatabase.conflictsOnPage) {
      newest = max(newest, $0.id)
      isOfMerge = isOfMerge && $0.isOfMerge
    }
    return forms.all(count, upTo: newest, ofMerge: isOfMerge)
  }
}

extension ServedDatabase {
  /// Writes the page of one conflict, with all that can be answered, and how it was decided before.
  ///
  /// - Throws: `BuckiaError` with `noSuchConflict`.
  func writeConflict(_ number: Int64, _ site: PageSite, on page: PageWriter) throws {
    var filter = ConflictFilter()
    filter.numbers = number...number
    let found = try manager.conflictCounts(matching: filter)
    guard !found.isEmpty else {
      throw BuckiaError(.noSuchConflict, "there is no conflict with the number \(number)")
    }
    var limits = limits
    limits.entries = 1
    let listing = ConflictsPage(of: manager, name: name, filter: filter, found: found, limits: limits, on: page)
    let forms = ConflictForms(database: self, query: ConflictQuery())
    listing.service = ConflictsPage.Service(
      site: site, actions: { isReadOnly ? nil : forms.whole($0) }, introduction: "",
      end: try history(of: number, filter))
    _ = try listing.write()
  }

  /// How it was decided before, each time.
  private func history(of number: Int64, _ filter: ConflictFilter) throws -> Markup {
    let resolutions = try manager.resolutions(of: number)
    guard !resolutions.isEmpty else { return "" }
    let isOfMerge = try manager.conflicts(matching: filter).contains(where: \.isOfMerge)
    var markup: Markup = "<section aria-labelledby=\"history\">\n<h2 id=\"history\">How it was decided</h2>\n"
    for resolution in resolutions {
      let unnamed = resolution.answer == .equal ? "By itself" : "Somebody"
      let who = resolution.decidedBy.isEmpty ? unnamed : resolution.decidedBy
      let when = "\(UTCTime(unixMilliseconds: resolution.decidedAt))"
      markup += "<p>\(who), \(when): \(resolution.answer.explanation(ofMerge: isOfMerge)).</p>\n"
    }
    markup += "</section>\n"
    return markup
  }
}

/// The conflicts that a page shows, from its address.
struct ConflictQuery: Equatable {
  var table: String?
  var diff: String?
  var kind: ConflictKind?
  /// True if decided ones are shown, too.
  var includesDecided = false
  /// Only those before this one, the last of the previous page.
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

  /// The same with another value, from the first page on.
  func with(_ change: (inout ConflictQuery) -> Void) -> ConflictQuery {
    var query = self
    query.before = nil
    change(&query)
    return query
  }

  /// The conflicts of this page and of the later ones.
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
