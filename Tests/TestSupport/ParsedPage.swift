import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// A page, parsed as XML, so that it must be well-formed.
public final class ParsedPage {
  /// An element with its contents.
  public final class Element {
    /// The element's name.
    public let name: String
    /// The element's attributes.
    public let attributes: [String: String]
    /// The child elements.
    public fileprivate(set) var children: [Element] = []
    /// The text of the element and its descendants.
    public fileprivate(set) var text = ""
    /// The containing element.
    public fileprivate(set) weak var parent: Element?

    fileprivate init(_ name: String, _ attributes: [String: String], in parent: Element?) {
      self.name = name
      self.attributes = attributes
      self.parent = parent
    }

    /// The element and its descendants, in the order of the page.
    public var all: [Element] { [self] + children.flatMap(\.all) }

    /// The descendants with a name.
    public func all(_ name: String) -> [Element] { all.filter { $0.name == name } }

    /// The descendants of a class.
    public func all(class name: String) -> [Element] {
      all.filter { ($0.attributes["class"] ?? "").split(separator: " ").contains(Substring(name)) }
    }
  }

  private struct NotWellFormed: Error, CustomStringConvertible { let description: String }

  /// The outermost element.
  public let root: Element

  /// Parses a page.
  ///
  /// - Throws: An error if the page is not well-formed.
  public init(_ bytes: [UInt8]) throws {
    let parser = XMLParser(data: Data(bytes))
    let reader = Reader()
    parser.delegate = reader
    guard parser.parse(), let root = reader.root else {
      throw NotWellFormed(
        description: "line \(parser.lineNumber), column \(parser.columnNumber): \(parser.parserError as Any)")
    }
    self.root = root
  }

  /// Builds the elements during parsing.
  private final class Reader: NSObject, XMLParserDelegate {
    private(set) var root: Element?
    private var open: [Element] = []

    func parser(
      _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
      attributes: [String: String]
    ) {
      let element = Element(name, attributes, in: open.last)
      if let parent = open.last { parent.children.append(element) } else { root = element }
      open.append(element)
    }

    func parser(
      _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
    ) {
      let ended = open.removeLast()
      open.last?.text += ended.text
    }

    func parser(_ parser: XMLParser, foundCharacters text: String) { open.last?.text += text }

    func parser(_ parser: XMLParser, foundCDATA block: Data) {
      open.last?.text += String(decoding: block, as: UTF8.self)
    }
  }
}

extension ParsedPage {
  /// The page's faults: in what it may load and run, and in its use by ear or by keyboard.
  public var faults: [String] { reachingFaults(under: nil) + referenceFaults + structureFaults + nameFaults }

  /// The faults of a page from a server, which may link to other pages of the server and send forms to it.
  ///
  /// - Parameter base: The start of all addresses of the server.
  public func faults(under base: String) -> [String] {
    reachingFaults(under: base) + referenceFaults + structureFaults + nameFaults
  }

  /// Elements that would load, run or send something.
  ///
  /// - Parameter base: The start of all addresses of the page's server; nil for a page in a file.
  private func reachingFaults(under base: String?) -> [String] {
    var known: Set = [
      "a", "aside", "body", "br", "caption", "dd", "details", "div", "dl", "dt", "h1", "h2", "head", "header", "html",
      "img", "input", "kbd", "label", "main", "mark", "meta", "nav", "p", "pre", "script", "section", "span", "style",
      "summary", "table", "tbody", "td", "th", "thead", "title", "tr",
    ]
    if base != nil { known.formUnion(["button", "form", "option", "select", "textarea"]) }
    let isOwn = { (address: String) in base.map { address.hasPrefix($0) } ?? false }
    var faults: [String] = []
    for element in root.all {
      if !known.contains(element.name) { faults.append("an element <\(element.name)>") }
      for (name, value) in element.attributes {
        switch name {
        case "href": if !value.hasPrefix("#"), !isOwn(value) { faults.append("a link to \(value)") }
        case "action": if element.name != "form" || !isOwn(value) { faults.append("a form for \(value)") }
        case "src":
          let isImage = ["png", "jpeg", "gif", "webp"].contains { value.hasPrefix("data:image/\($0);base64,") }
          if element.name != "img" || !isImage { faults.append("<\(element.name)> from \(value.prefix(80))") }
        case "style", "srcset", "srcdoc", "formaction", "background", "ping":
          faults.append("\(name)=\(value)")
        default: if name.hasPrefix("on") { faults.append("\(name)=\(value)") }
        }
      }
    }
    for (name, count) in [("script", 1), ("style", 1), ("title", 1)] where root.all(name).count != count {
      faults.append("\(root.all(name).count) times <\(name)>")
    }
    return faults
  }

  /// Duplicate ids, and references to missing ids.
  private var referenceFaults: [String] {
    let ids = root.all.compactMap { $0.attributes["id"] }
    let known = Set(ids)
    var faults = known.count == ids.count ? [] : ["an id that is there twice"]
    for element in root.all {
      let references = [
        element.attributes["href"].flatMap { $0.hasPrefix("#") ? String($0.dropFirst()) : nil },
        element.attributes["aria-labelledby"], element.attributes["for"],
      ]
      faults += references.compactMap { $0 }.filter { !known.contains($0) }.map { "no element with the id \($0)" }
    }
    return faults
  }

  /// Language, landmarks, headings, and the order of the keyboard.
  private var structureFaults: [String] {
    var faults: [String] = []
    if root.attributes["lang"] != "en" { faults.append("no language") }
    for name in ["h1", "main", "header"] where root.all(name).count != 1 { faults.append("not one <\(name)>") }
    var level = 0
    for heading in root.all where ["h1", "h2", "h3", "h4"].contains(heading.name) {
      let next = Int(heading.name.dropFirst()) ?? 0
      if next > level + 1 { faults.append("<\(heading.name)> behind a heading of level \(level)") }
      level = next
    }
    for element in root.all {
      if let index = element.attributes["tabindex"], !["0", "-1"].contains(index) {
        faults.append("tabindex \(index)")
      }
    }
    let body = root.children.last
    let landmarks: Set = ["header", "nav", "main", "aside", "script"]
    for child in body?.children ?? [] where !landmarks.contains(child.name) {
      let isLandmark = child.attributes["role"] == "search" || child.attributes["class"] == "skip"
      if !isLandmark { faults.append("<\(child.name)> outside of all landmarks") }
    }
    return faults
  }

  /// Elements without a name for people who cannot see them.
  private var nameFaults: [String] {
    var faults: [String] = []
    let labelled = Set(root.all("label").compactMap { $0.attributes["for"] })
    for element in root.all {
      switch element.name {
      case "th": if element.attributes["scope"] == nil { faults.append("a header cell without a scope") }
      case "table": if element.children.first?.name != "caption" { faults.append("a table without a caption") }
      case "img": if element.attributes["alt"] == nil { faults.append("an image without alt") }
      case "input", "select", "textarea":
        if element.attributes["type"] == "hidden" { break }
        let hasLabel = element.attributes["id"].map(labelled.contains) == true || element.parent?.name == "label"
        if !hasLabel { faults.append("<\(element.name)> without a label") }
      case "a", "button", "h1", "h2", "option", "summary", "title":
        if element.text.isEmpty { faults.append("an empty <\(element.name)>") }
      case "nav", "aside":
        if element.attributes["aria-label"] == nil { faults.append("a <\(element.name)> without a name") }
      default: break
      }
    }
    return faults
  }
}
