import BuckiaBytes
import Foundation
import TestSupport
import Testing

/// A running `buckia serve`, with the requests of a browser that runs no scripts.
final class ServedSite {
  /// A loaded page.
  struct Page {
    let status: Int
    /// The path and query of the page after redirects.
    let address: String
    let root: ParsedPage.Element

    /// The sentences in which the page says what has happened.
    var message: [String] { root.all(class: "message").flatMap { $0.all("p") }.map(\.text) }

    /// True if the action succeeded.
    var isGood: Bool { root.all(class: "message").first?.attributes["class"] == "message good" }

    /// Returns the conflict or file whose heading contains the text.
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
  /// The start of all addresses: the token between slashes.
  let root: String

  /// Starts the command.
  init(_ bench: Workbench, _ arguments: [String] = []) throws {
    self.bench = bench
    command = try RunningCommand(["serve", "ben.db", "--by", "Ben"] + arguments, on: bench)
    let url = try #require(URLComponents(string: try command.firstLine()))
    port = try #require(url.port)
    root = url.path
  }

  // MARK: Requests

  /// Sends a request as a browser does, without following redirects.
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

  /// Loads a page, and checks that it loads nothing from elsewhere and is accessible by ear and by keyboard.
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
  ///   - part: The part of the page that contains the form.
  ///   - values: The values by field name; the other fields are sent unchanged.
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
      // The line break after the start tag does not belong to the text.
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
