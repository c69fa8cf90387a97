import BuckiaBytes
import Foundation
import TestSupport
import Testing

/// A `buckia serve` that runs, and somebody who visits its pages as a browser without scripts does.
final class ServedSite {
  /// A page that was loaded.
  struct Page {
    let status: Int
    /// The path and the query that it was found at in the end.
    let address: String
    let root: ParsedPage.Element

    /// What the page says has happened, a sentence each.
    var message: [String] { root.all(class: "message").flatMap { $0.all("p") }.map(\.text) }

    /// True if what has happened is what was wanted.
    var isGood: Bool { root.all(class: "message").first?.attributes["class"] == "message good" }

    /// The conflicts or files on it, by the beginnings of their headings.
    func entry(_ heading: String) throws -> ParsedPage.Element {
      try #require(root.all(class: "entry").first { $0.text.contains(heading) }, "\(heading): \(root.text)")
    }

    /// The address that a link leads to.
    func link(_ name: String) throws -> String {
      let addresses = root.all("a").filter { $0.text.hasPrefix(name) }.compactMap { $0.attributes["href"] }
      return try #require(addresses.first { !$0.hasPrefix("#") }, "\(name)")
    }
  }

  let bench: Workbench
  let command: RunningCommand
  let port: Int
  /// What all addresses begin with: the token between slashes.
  let root: String

  /// Starts the command.
  init(_ bench: Workbench, _ arguments: [String] = []) throws {
    self.bench = bench
    command = try RunningCommand(["serve", "ben.db", "--by", "Ben"] + arguments, on: bench)
    let url = try #require(URLComponents(string: try command.firstLine()))
    port = try #require(url.port)
    root = url.path
  }

  // MARK: Asking

  /// Sends a request as a browser does, without following where it leads.
  func ask(
    _ method: String, _ address: String, headers: [String] = [], body: String = ""
  ) throws -> LoopbackConnection.Answer {
    let connection = try LoopbackConnection(port: port)
    var lines = ["\(method) \(address) HTTP/1.1", "Host: 127.0.0.1:\(port)", "Sec-Fetch-Site: same-origin"] + headers
    if method == "POST" {
      lines += [
        "Origin: null", "Content-Type: application/x-www-form-urlencoded", "Content-Length: \(body.utf8.count)",
      ]
    }
    connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
    return try connection.answer()
  }

  /// Loads a page. Whatever is on it, it can reach nothing else, and can be used by ear and by the keyboard.
  func page(_ path: String = "") throws -> Page { try page(at: root + path) }

  /// Loads the page that a link leads to.
  func page(at address: String) throws -> Page {
    let answer = try ask("GET", address)
    let page = try ParsedPage(answer.body)
    #expect(page.faults(under: root) == [], "\(address)")
    let policy = answer.headers["content-security-policy"] ?? ""
    for part in ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "connect-src 'self'"] {
      #expect(policy.contains(part), "\(policy)")
    }
    return Page(status: answer.status, address: address, root: page.root)
  }

  /// Fills in a form and presses a button.
  ///
  /// - Parameters:
  ///   - button: What the button begins with.
  ///   - part: The part of the page that the form is in.
  ///   - values: What is filled in, by the names of the fields; the others are sent as they are on the page.
  func press(
    _ button: String, in part: ParsedPage.Element, _ values: [String: String] = [:]
  ) throws -> Page {
    let form = try #require(
      part.all("form").first { $0.all("button").contains { $0.text.hasPrefix(button) } }, "\(button): \(part.text)")
    let pressed = try #require(form.all("button").first { $0.text.hasPrefix(button) })
    var fields: [(String, String)] = []
    for element in form.all {
      guard let name = element.attributes["name"] else { continue }
      switch element.name {
      case "input" where element.attributes["type"] == "hidden":
        fields.append((name, element.attributes["value"] ?? ""))
      case "input": if values[name] != nil { fields.append((name, element.attributes["value"] ?? "")) }
      case "select":
        let first = element.all("option").first?.attributes["value"] ?? ""
        fields.append((name, values[name] ?? first))
      // The line end behind the element's name does not belong to what is in it.
      case "textarea": fields.append((name, values[name] ?? String(element.text.drop { $0 == "\n" })))
      default: break
      }
    }
    fields.append((pressed.attributes["name"] ?? "", pressed.attributes["value"] ?? ""))
    let body = fields.map { "\(Self.encoded($0.0))=\(Self.encoded($0.1))" }.joined(separator: "&")
    let answer = try ask("POST", try #require(form.attributes["action"]), body: body)
    #expect(answer.status == 303, "\(answer.text)")
    return try page(at: try #require(answer.headers["location"]))
  }

  private static func encoded(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
  }
}
