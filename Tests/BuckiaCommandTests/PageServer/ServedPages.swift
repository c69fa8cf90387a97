@testable import BuckiaCommand
import TestSupport
import Testing

/// A server for tests, whose answers repeat the request.
final class ServedPages {
  let server: PageServer
  let token = PageToken()

  /// - Parameter respond: Gives other answers.
  init(limits: ServerLimits = ServerLimits(), respond: (@Sendable (PageRequest) -> PageResponse)? = nil) throws {
    server = try PageServer(port: 0, token: token, limits: limits) { request in
      if let respond { return respond(request) }
      let fields = (request.query.fields + request.form.fields).map { "\($0.name)=\($0.value)" }
      return .text(.ok, "\(request.method) \(request.path) \(fields)")
    }
  }

  deinit { server.close() }

  /// The path of a page.
  func path(_ path: String = "") -> String { "/\(token.text)/\(path)" }

  /// The header field without which every request is refused.
  var host: String { "Host: 127.0.0.1:\(server.port)\r\n" }

  /// The header fields that a browser sends with a form of one of our pages.
  var formHeaders: String {
    host + "Origin: null\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
  }

  func connect() throws -> LoopbackConnection { try LoopbackConnection(port: server.port) }

  /// Sends a request on a new connection.
  func ask(_ head: String, _ headers: String, body: String = "") throws -> LoopbackConnection.Answer {
    let connection = try connect()
    let length = body.isEmpty ? "" : "Content-Length: \(body.utf8.count)\r\n"
    connection.send("\(head) HTTP/1.1\r\n\(headers)\(length)\r\n\(body)")
    return try connection.answer(isHead: head.hasPrefix("HEAD"))
  }
}
