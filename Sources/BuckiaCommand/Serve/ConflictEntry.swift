import Buckia

/// The page of one conflict, with all that can be answered, and how it was decided before.
struct ConflictEntry {
  let database: ServedDatabase
  let addresses: SiteAddresses
  let site: PageSite
  let number: Int64

  /// Writes the page.
  ///
  /// - Throws: `BuckiaError` with `noSuchConflict`.
  func write(on page: PageWriter) throws {
    var filter = ConflictFilter()
    filter.numbers = number...number
    let found = try database.manager.conflictCounts(matching: filter)
    guard !found.isEmpty else {
      throw BuckiaError(.noSuchConflict, "there is no conflict with the number \(number)")
    }
    var limits = database.limits
    limits.entries = 1
    let listing = ConflictsPage(
      of: database.manager, name: database.name, filter: filter, found: found, limits: limits, on: page)
    let forms = ConflictForms(addresses: addresses, query: ConflictQuery())
    let isReadOnly = database.isReadOnly
    listing.service = ConflictsPage.Service(
      site: site, actions: { isReadOnly ? nil : forms.whole($0) }, introduction: "", end: try history())
    _ = try listing.write()
  }

  /// How it was decided before, each time.
  private func history() throws -> Markup {
    let resolutions = try database.manager.resolutions(of: number)
    guard !resolutions.isEmpty else { return "" }
    var markup: Markup = "<section aria-labelledby=\"history\">\n<h2 id=\"history\">How it was decided</h2>\n"
    for resolution in resolutions {
      let unnamed = resolution.answer == .equal ? "By itself" : "Somebody"
      let who = resolution.decidedBy.isEmpty ? unnamed : resolution.decidedBy
      let when = "\(Moment(unixMilliseconds: resolution.decidedAt))"
      markup += "<p>\(who), \(when): \(resolution.answer.explanation).</p>\n"
    }
    markup += "</section>\n"
    return markup
  }
}
