import BuckiaSync
import BuckiaStorage
import Foundation

@testable import BuckiaSync

/// The real OpenID Connect servers that tests use: started once, and ended with the tests.
struct SignInServers: Sendable {
  /// Authlib's server.
  let authlib: String
  /// oidc-provider-mock.
  let mock: String

  /// The error if the servers cannot be started.
  struct NotStarted: Error, CustomStringConvertible {
    let description: String
  }

  /// The servers, for all tests.
  static func shared() async throws -> SignInServers { try await starting.value }

  private static let starting = Task {
    // The first start takes a while, and must not block a thread of Swift's pool.
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Result { try start() }) }
    }
  }
  /// Kept as long as the process lives: the servers end when their standard input does.
  private static let input = Pipe()

  private static func start() throws -> SignInServers {
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../../Servers/oidc").standardized.path
    let process = Process()
    process.executableURL = URL(fileURLWithPath: script)
    let output = Pipe()
    let complaints = Pipe()
    process.standardInput = input
    process.standardOutput = output
    process.standardError = complaints
    try process.run()
    var text = ""
    while text.filter({ $0 == "\n" }).count < 2 {
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else {
        let reason = String(decoding: complaints.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        throw NotStarted(
          description:
            "Tests/Servers/oidc does not start; it needs python3 and its module venv (package python3-venv): \(reason)")
      }
      text += String(decoding: more, as: UTF8.self)
    }
    let ports = text.split(separator: "\n")
    return SignInServers(authlib: "http://127.0.0.1:\(ports[0])", mock: "http://127.0.0.1:\(ports[1])")
  }

  /// The transport to the servers.
  static let transport: any HTTPTransport = {
    var settings = HTTPSettings()
    settings.proxy = .none
    do { return try AsyncHTTPTransport(settings) } catch { return StubTransport { _ in throw error } }
  }()

  /// Acts as a browser: opens the address of a server where a person agrees, and follows the redirect.
  ///
  /// - Returns: The app's answer.
  @discardableResult
  static func browse(_ address: String) async throws -> (status: Int, text: String) {
    var request = HTTPTransportRequest("POST", try HTTPAddress(address))
    request.headers["Content-Type"] = "application/x-www-form-urlencoded"
    request.body = .bytes(Array("sub=anna".utf8))
    let consent = try await transport.send(request)
    guard let location = consent.headers["Location"] else {
      throw NotStarted(description: "the server does not send the browser on: \(consent.status)")
    }
    return try await get(location)
  }

  /// Gets a page.
  static func get(
    _ address: String, _ headers: BuckiaSync.HTTPHeaders = [:]
  ) async throws -> (status: Int, text: String) {
    let response = try await transport.send(HTTPTransportRequest("GET", try HTTPAddress(address), headers: headers))
    return (response.status, String(decoding: try await response.body.bytes(upTo: 1 << 20), as: UTF8.self))
  }

  /// Tells a server what the person does.
  static func post(_ address: String) async throws {
    let response = try await transport.send(HTTPTransportRequest("POST", try HTTPAddress(address), body: .bytes([])))
    guard response.status == 204 else { throw NotStarted(description: "the test server answers \(response.status)") }
  }
}
