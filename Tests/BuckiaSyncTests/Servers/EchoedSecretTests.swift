import BuckiaStorage
import Foundation
import ServerTestSupport
import Testing

@testable import BuckiaSync

@Suite("Secrets that servers send back")
struct EchoedSecretTests {
  private static let secret = "correcthorse7"

  /// Makes a request to a storage.
  enum Kind: String, CaseIterable, Sendable { case s3, webDAV, bunny }

  private func storage(_ kind: Kind, at address: String) throws -> any StorageProvider {
    var policy = RetryPolicy()
    policy.attempts = 1
    let transport = try Servers.transport.get()
    switch kind {
    case .s3:
      return try S3Bucket(
        S3Configuration(endpoint: address, region: "us-east-1", bucket: "bucket"),
        credentials: S3Credentials(accessKey: "AKID", secret: "hidden", sessionToken: Self.secret),
        transport: transport, retries: policy)
    case .webDAV:
      return try WebDAVFolder(
        WebDAVConfiguration(
          address: "\(address)/dav", credentials: WebDAVCredentials(user: "anna", password: Self.secret)),
        transport: transport, retries: policy)
    case .bunny:
      return try BunnyStorage(
        BunnyConfiguration(zone: "zone", endpoint: address, accessKey: Self.secret), transport: transport,
        retries: policy)
    }
  }

  /// Refuses everything, with the received header and the password itself in the answer.
  private func server(_ status: Int, isXML: Bool) async throws -> FaultServer {
    try await FaultServer { request in
      let fields = ["X-Amz-Security-Token", "Authorization", "AccessKey"].compactMap { request.header($0) }
      let said = "\(fields.joined(separator: " ")) \(Self.secret) is wrong"
      let body =
        isXML
        ? "<Error><Code>AccessDenied</Code><Message>\(said)</Message></Error>" : "{\"Message\":\"\(said)\"}"
      return .answer(status, body: Array(body.utf8))
    }
  }

  @Test("No error contains the secrets", arguments: Kind.allCases, [401, 403, 503])
  func errors(kind: Kind, status: Int) async throws {
    let inHeader = Data("anna:\(Self.secret)".utf8).base64EncodedString()
    for isXML in [true, false] {
      let server = try await server(status, isXML: isXML)
      let storage = try storage(kind, at: server.address)
      let path = try RemotePath("a/b")
      let calls: [@Sendable () async throws -> Void] = [
        { _ = try await storage.list(ListRequest(folder: path)) }, { _ = try await storage.get(path, GetRequest()) },
        { try await storage.put(StorageContents([1]), to: path, .none) }, { try await storage.delete(path) },
      ]
      for call in calls {
        let error = try await #require(throws: StorageError.self) { try await call() }
        #expect(error.status == status)
        var dumped = ""
        dump(error, to: &dumped)
        for text in ["\(error)", String(reflecting: error), dumped] {
          #expect(!text.contains(Self.secret))
          #expect(!text.contains(inHeader))
        }
      }
    }
  }
}
