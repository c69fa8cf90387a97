/// What stands around the contents of a page: its policy, style and script, its heading, what can be searched, and the list of its tables.
package struct PageFrame: Sendable {
  /// A line of the list of tables.
  package struct Table: Sendable {
    /// The table.
    package let name: String
    /// The id of its section; nil where there is none.
    package let id: String?
    /// The numbers, one for each heading.
    package let counts: [String]

    /// - Parameters:
    ///   - name: The table.
    ///   - id: The id of its section.
    ///   - counts: The numbers, one for each heading.
    package init(_ name: String, id: String?, counts: [String]) {
      self.name = name
      self.id = id
      self.counts = counts
    }
  }

  /// What the page is about: its title and heading.
  package let title: String
  /// What is known of it, by name.
  package let facts: [(name: String, value: String)]
  /// What the entries are, in the plural.
  package let noun: String
  /// The headings of the numbers in the list of tables.
  package let counts: [String]
  /// The list of tables.
  package let tables: [Table]
  /// What is to be said of tables that are not listed; nil where all are.
  package let rest: String?
  /// What a page of a server has besides; nil for a page that is a file.
  package var site: PageSite?

  /// - Parameters:
  ///   - title: What the page is about.
  ///   - facts: What is known of it, by name.
  ///   - noun: What the entries are, in the plural.
  ///   - counts: The headings of the numbers in the list of tables.
  ///   - tables: The list of tables.
  ///   - rest: What is to be said of tables that are not listed.
  package init(
    title: String, facts: [(name: String, value: String)], noun: String, counts: [String], tables: [Table],
    rest: String? = nil
  ) {
    self.title = title
    self.facts = facts
    self.noun = noun
    self.counts = counts
    self.tables = tables
    self.rest = rest
  }

  /// Writes the page.
  ///
  /// - Parameter contents: Writes what is inside, sections with headings of the second level.
  /// - Throws: What the page's output and `contents` throw.
  package func write(on page: PageWriter, contents: () throws -> Void) throws {
    try page.write(head)
    try page.write(heading)
    try page.write(tools)
    try page.write(contentsList)
    try page.write("<main id=\"main\" tabindex=\"-1\" data-noun=\"\(noun)\"\(site?.attributes ?? "")>\n")
    try contents()
    try page.write("</main>\n<script>\(Markup(verbatim: script))</script>\n</body>\n</html>\n")
  }

  private var style: String { site == nil ? PageStyle.text : PageSite.style }

  private var script: String { site == nil ? PageScript.text : PageSite.script }

  private var head: Markup {
    """
    <!DOCTYPE html>
    <html lang="en" xmlns="http://www.w3.org/1999/xhtml">
    <head>
    <meta charset="utf-8" />
    \(policy)<meta name="referrer" content="no-referrer" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>\(title)</title>
    <style>\(Markup(verbatim: style))</style>
    </head>
    <body>
    <a class="skip" href="#main">Skip to the \(noun)</a>

    """
  }

  /// The policy of a page of a server is in the header of the answer, which can say more.
  private var policy: Markup {
    guard site == nil else { return "" }
    return """
      <meta http-equiv="Content-Security-Policy" \
      content="\(ContentSecurityPolicy.text(style: PageStyle.text, script: PageScript.text))" />

      """
  }

  private var heading: Markup {
    var markup: Markup = "<header>\n\(site?.links ?? "")<h1>\(title)</h1>\n"
    if let message = site?.message { markup += message.markup }
    if !facts.isEmpty {
      markup += "<dl>\n"
      for fact in facts { markup += "<dt>\(fact.name)</dt><dd>\(fact.value)</dd>\n" }
      markup += "</dl>\n"
    }
    markup += "</header>\n"
    if site != nil { markup += PageSite.news }
    return markup
  }

  /// The search, and what the keyboard does. Both are hidden where no script runs.
  private var tools: Markup {
    """
    <div class="tools scripted" role="search" hidden="hidden">
    <label for="query">Search the \(noun)</label>
    <input type="search" id="query" autocomplete="off" spellcheck="false" />
    <span id="status" role="status"></span>
    </div>
    <aside class="keys scripted" aria-label="Keyboard" hidden="hidden">
    <details id="keys"><summary>Keyboard</summary>
    <dl>
    <dt><kbd>/</kbd></dt><dd>search; <kbd>Enter</kbd> goes to the first match, <kbd>Esc</kbd> shows everything again</dd>
    <dt><kbd>Tab</kbd></dt><dd>goes on: to the search, the list of tables, the \(noun), the folded parts</dd>
    <dt><kbd>↓</kbd> <kbd>↑</kbd></dt><dd>among the \(noun): the next one, the one before</dd>
    <dt><kbd>→</kbd> <kbd>←</kbd></dt><dd>the first of the next table, of the one before</dd>
    <dt><kbd>Home</kbd> <kbd>End</kbd></dt><dd>the first of all, the last</dd>
    <dt><kbd>?</kbd></dt><dd>shows and hides this list</dd>
    </dl>
    <p><label><input type="checkbox" id="shortcuts" checked="checked" /> \
    <kbd>/</kbd> and <kbd>?</kbd> work anywhere on the page</label></p>
    </details>
    </aside>

    """
  }

  private var contentsList: Markup {
    guard !tables.isEmpty else { return "" }
    var headings: Markup = ""
    for count in counts { headings += "<th scope=\"col\">\(count)</th>" }
    var markup: Markup = """
      <nav aria-label="Tables">
      <h2>Tables</h2>
      <table class="contents"><caption class="unseen">How many \(noun) each table has</caption>
      <thead><tr><th scope="col">Table</th>\(headings)</tr></thead>
      <tbody>

      """
    for table in tables {
      let name: Markup = if let id = table.id { "<a href=\"#\(id)\">\(table.name)</a>" } else { "\(table.name)" }
      markup += "<tr><th scope=\"row\">\(name)</th>"
      for count in table.counts { markup += "<td>\(count)</td>" }
      markup += "</tr>\n"
    }
    markup += "</tbody>\n</table>\n"
    if let rest { markup += "<p class=\"rest\">\(rest)</p>\n" }
    markup += "</nav>\n"
    return markup
  }
}
