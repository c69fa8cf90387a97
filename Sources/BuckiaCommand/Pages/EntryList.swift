/// Writes the changes of one table, or its conflicts, as a section of a page. What is far down is folded.
package struct EntryList {
  private let page: PageWriter
  /// What the versions of a row are called.
  private let versions: [String]
  private let table: String
  private var count = 0

  /// How many entries are shown unfolded, and how many a fold holds.
  private static let unfolded = 25
  private static let foldSize = 100

  /// Begins the section.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - id: What links to the section name.
  ///   - remark: What there is to say about all of it.
  ///   - versions: What the versions of a row are called.
  ///   - page: The page.
  /// - Throws: What the page's output throws.
  package init(
    _ table: String, id: String, remark: String, versions: [String], on page: PageWriter
  ) throws {
    self.page = page
    self.versions = versions
    self.table = table
    try page.write(
      """
      <section class="list" aria-labelledby="\(id)">
      <h2 id="\(id)" tabindex="-1">\(table)</h2>
      <p class="faint">\(remark)</p>

      """)
  }

  /// Writes an entry.
  ///
  /// - Parameter isReachedByTab: Whether the Tab key stops here: at the first entry of the page.
  /// - Throws: What the page's output throws.
  package mutating func add(_ entry: PageEntry, isReachedByTab: Bool) throws {
    if isAtEdge {
      try endTable()
      if count > 0 {
        try page.write("<details class=\"fold\"><summary>From #\(entry.number) on</summary>\n")
      }
      try beginTable()
    }
    count += 1
    try page.write(entry.markup(versions: versions.count, isReachedByTab: isReachedByTab))
  }

  /// Ends the section.
  ///
  /// - Parameter rest: What is to be said of entries that are not on the page; nil where there are none.
  /// - Throws: What the page's output throws.
  package mutating func end(rest: String? = nil) throws {
    try endTable()
    if let rest { try page.write("<p class=\"rest\">\(rest)</p>\n") }
    try page.write("</section>\n")
  }

  /// Whether the next entry begins a table: the first one, or that of a fold.
  private var isAtEdge: Bool { count == 0 || count >= Self.unfolded && (count - Self.unfolded) % Self.foldSize == 0 }

  private func beginTable() throws {
    var columns: Markup = ""
    for version in versions { columns += "<th scope=\"col\">\(version)</th>" }
    try page.write(
      """
      <table class="entries"><caption class="unseen">\(table)</caption>
      <thead><tr><th scope="col">Column</th>\(columns)</tr></thead>

      """)
  }

  private func endTable() throws {
    guard count > 0 else { return }
    try page.write("</table>\n")
    if count > Self.unfolded { try page.write("</details>\n") }
  }
}
