/// What a page of a server has besides: links to the other pages, what has just happened, and where its script asks
/// whether anything has changed.
package struct PageSite: Sendable {
  /// Another page of the server.
  package struct Link: Sendable {
    /// What it is called.
    package let name: String
    /// Where it is.
    package let path: String
    /// Whether it is this page, or what this page belongs to.
    package let isCurrent: Bool

    /// - Parameters:
    ///   - name: What it is called.
    ///   - path: Where it is.
    ///   - isCurrent: Whether it is this page, or what this page belongs to.
    package init(_ name: String, path: String, isCurrent: Bool) {
      self.name = name
      self.path = path
      self.isCurrent = isCurrent
    }
  }

  /// The pages.
  package let pages: [Link]
  /// What has just happened; nil for nothing.
  package let message: PageMessage?
  /// Where the version of what the page shows is found.
  package let statePath: String
  /// The version that the page shows.
  package let version: String

  /// - Parameters:
  ///   - pages: The pages.
  ///   - message: What has just happened.
  ///   - statePath: Where the version of what the page shows is found.
  ///   - version: The version that the page shows.
  package init(pages: [Link], message: PageMessage?, statePath: String, version: String) {
    self.pages = pages
    self.message = message
    self.statePath = statePath
    self.version = version
  }

  /// The policy for the header of the answer.
  package static let policy = ContentSecurityPolicy.served(style: style, script: script)

  static let style = "\(PageStyle.text)\n\(SiteStyle.text)"
  static let script = "\(PageScript.text)\n\(SiteScript.text)"

  /// What the script finds on the main part of the page.
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

  /// Where it is said that something has changed. It is there from the beginning, so that it is read out when something is
  /// put into it.
  static let news: Markup = """
    <aside class="news" aria-label="What has changed meanwhile">
    <span id="news" role="status"></span> <button type="button" id="reload" hidden="hidden">Show it</button>
    </aside>

    """
}
