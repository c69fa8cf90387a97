import Crypto

/// The frame around the contents of a page: its policy, style and script, its heading, the search, and the list of its
/// tables.
struct PageFrame: Sendable {
  /// A line of the list of tables: the table, the id of its section, and the numbers, one for each heading.
  typealias Table = (name: String, id: String, counts: [String])

  /// The title and heading of the page.
  let title: String
  /// Facts about it, by name.
  let facts: [(name: String, value: String)]
  /// The name of the entries, in the plural.
  let noun: String
  /// The headings of the numbers in the list of tables.
  var counts: [String] = []
  /// The list of tables.
  var tables: [Table] = []
  /// A note on tables that are not listed; nil if all are.
  var rest: String?
  /// The additions for a page of a server; nil for a page in a file.
  var site: PageSite?

  /// Writes the page.
  ///
  /// - Parameter contents: Writes the contents: sections with headings of the second level.
  /// - Throws: What the page's output and `contents` throw.
  func write(on page: PageWriter, contents: () throws -> Void) throws {
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

  /// The policy of a page of a server is in the header of the response, which permits more directives.
  private var policy: Markup {
    guard site == nil else { return "" }
    return """
      <meta http-equiv="Content-Security-Policy" \
      content="\(Self.policy(style: PageStyle.text, script: PageScript.text, formAction: "'none'"))" />

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

  /// The search, and the help for the keyboard. Both are hidden without scripts.
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
    let headings = Markup(counts) { "<th scope=\"col\">\($0)</th>" }
    var markup: Markup = """
      <nav aria-label="Tables">
      <h2>Tables</h2>
      <table class="contents"><caption class="unseen">How many \(noun) each table has</caption>
      <thead><tr><th scope="col">Table</th>\(headings)</tr></thead>
      <tbody>

      """
    for table in tables {
      markup += "<tr><th scope=\"row\"><a href=\"#\(table.id)\">\(table.name)</a></th>"
      for count in table.counts { markup += "<td>\(count)</td>" }
      markup += "</tr>\n"
    }
    markup += "</tbody>\n</table>\n"
    if let rest { markup += "<p class=\"rest\">\(rest)</p>\n" }
    markup += "</nav>\n"
    return markup
  }
}

extension PageFrame {
  /// What links to the section of a table name.
  static func sectionID(_ place: Int) -> String { "table-\(place + 1)" }

  /// A note on tables that are not listed; nil if all are.
  static func rest(of tableCount: Int, _ limits: PageLimits) -> String? {
    let left = tableCount - limits.tables
    return left > 0 ? "\(left.counted("more table")) not listed (--full lists all)" : nil
  }

  /// A number in the list of tables.
  static func number(_ count: Int) -> String { count == 0 ? "–" : count.grouped }
}

/// The additions for a page of a server: links to the other pages, the last result, and the address at which its script
/// checks for changes.
struct PageSite: Sendable {
  /// The pages of the server: the name and path of each, and its relation to this page.
  let pages: [(name: String, path: String, isCurrent: Bool)]
  /// The result of the last action; nil for none.
  let message: PageMessage?
  /// The address of the version of the page's content.
  let statePath: String
  /// The version that the page shows.
  let version: String

  /// The policy for the header of the response: the page may also send forms to the server and request its state, and
  /// no other page may embed it.
  static let policy =
    PageFrame.policy(style: style, script: script, formAction: "'self'")
    + "; connect-src 'self'; frame-ancestors 'none'"

  static let style = "\(PageStyle.text)\n\(PageStyle.siteText)"
  static let script = "\(PageScript.text)\n\(PageScript.siteText)"

  /// The attributes of the main part of the page, for the script.
  var attributes: Markup { " data-state=\"\(statePath)\" data-version=\"\(version)\"" }

  var links: Markup {
    var markup: Markup = "<nav class=\"site\" aria-label=\"Pages\">\n"
    for page in pages {
      let current: Markup = page.isCurrent ? " aria-current=\"page\"" : ""
      markup += "<a href=\"\(page.path)\"\(current)>\(page.name)</a>\n"
    }
    markup += "</nav>\n"
    return markup
  }

  /// The place for the message that something has changed. It exists from the beginning, since screen readers read out
  /// changes of an existing element.
  static let news: Markup = """
    <aside class="news" aria-label="What has changed meanwhile">
    <span id="news" role="status"></span> <button type="button" id="reload" hidden="hidden">Show it</button>
    </aside>

    """
}

/// The result of an action on a page of a server.
struct PageMessage: Sendable {
  /// How it went: good or bad.
  let tone: FileList.Tone
  /// The results, a sentence each.
  let lines: [String]
  /// The address with more; nil for none.
  let link: (name: String, path: String)?

  /// - Parameters:
  ///   - tone: How it went.
  ///   - lines: The results, a sentence each.
  ///   - link: The address with more.
  init(_ tone: FileList.Tone, _ lines: [String], link: (name: String, path: String)? = nil) {
    self.tone = tone
    self.lines = lines
    self.link = link
  }

  /// The result of an action, or the error that it threw.
  static func telling(_ action: () throws -> PageMessage) -> PageMessage {
    do {
      return try action()
    } catch {
      return PageMessage(.bad, [ErrorReport(error).message, "Nothing was changed."])
    }
  }

  var markup: Markup {
    var markup: Markup = """
      <div class="message \(tone.rawValue)" id="message" role="\(tone == .good ? "status" : "alert")" tabindex="-1">

      """
    for line in lines { markup += "<p>\(line)</p>\n" }
    if let link { markup += "<p><a href=\"\(link.path)\">\(link.name)</a></p>\n" }
    markup += "</div>\n"
    return markup
  }
}

/// The permissions of a page in the browser: show it and run the one script in it, nothing else.
///
/// A page in a file has no response header. Its policy is therefore in the page, before all content. It follows [CSP
/// Level 3](https://www.w3.org/TR/CSP3/): scripts and styles are allowed by the SHA-256 of their bytes, images as bytes
/// in the page.
extension PageFrame {
  /// The policy of a page.
  ///
  /// - Parameters:
  ///   - style: The content of `<style>`.
  ///   - script: The content of `<script>`.
  ///   - formAction: The permitted target of forms.
  fileprivate static func policy(style: String, script: String, formAction: String) -> String {
    [
      "default-src 'none'", "script-src '\(source(script))'", "style-src '\(source(style))'", "img-src data:",
      "base-uri 'none'", "form-action \(formAction)", "require-trusted-types-for 'script'", "trusted-types 'none'",
    ].joined(separator: "; ")
  }

  /// How the policy names a text that is a part of the page.
  private static func source(_ text: String) -> String {
    "sha256-\(Data(SHA256.hash(data: Data(text.utf8))).base64EncodedString())"
  }
}
