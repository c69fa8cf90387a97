/// What has come of something that was done on a page of a server.
package struct PageMessage: Sendable {
  /// How it went.
  package enum Tone: String, Sendable {
    case good, bad
  }

  /// How it went.
  package let tone: Tone
  /// What has happened, a sentence each.
  package let lines: [String]
  /// Where more is found; nil for nowhere.
  package let link: (name: String, path: String)?

  /// - Parameters:
  ///   - tone: How it went.
  ///   - lines: What has happened, a sentence each.
  ///   - link: Where more is found.
  package init(_ tone: Tone, _ lines: [String], link: (name: String, path: String)? = nil) {
    self.tone = tone
    self.lines = lines
    self.link = link
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
