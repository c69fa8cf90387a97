import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import NIOConcurrencyHelpers
import Testing

@testable import BuckiaSync

/// Uses a stand-in that follows the documentation: the service has no test accounts.
@Suite("Making keys of Backblaze B2")
struct B2KeyFactoryTests {
  private let time = TestClock()

  /// The state of the stand-in.
  private final class Service: Sendable {
    let sessions = NIOLockedValueBox(0)
    let keys = NIOLockedValueBox<[String]>([])
    /// Changes the answer to a call.
    let twist: @Sendable (String, JSONObject) -> JSONObject

    init(_ twist: @escaping @Sendable (String, JSONObject) -> JSONObject = { $1 }) { self.twist = twist }

    func answer(_ request: HTTPTransportRequest) throws -> HTTPTransportResponse {
      let name = String(request.url.path.dropFirst("/b2api/v3/".count))
      if name == "b2_authorize_account" {
        guard request.headers["Authorization"] == "Basic aWQ6c2VjcmV0", request.method == "GET" else {
          return refusal(401, "bad_auth_token", "wrong key")
        }
        let session = sessions.withLockedValue {
          $0 += 1
          return $0
        }
        return reply(
          name,
          [
            "accountId": "acc", "authorizationToken": .string("session-\(session)"),
            "apiInfo": ["storageApi": ["apiUrl": "https://api001.example", "minimumPartSize": 5_000_000]],
          ])
      }
      guard request.headers["Authorization"] == "session-\(sessions.withLockedValue { $0 })" else {
        return refusal(401, "expired_auth_token", "session has ended")
      }
      guard case .object(let body) = try JSONParser.parse(Array(request.text.utf8)) else {
        return refusal(400, "bad_request", "")
      }
      switch name {
      case "b2_list_buckets":
        guard body["accountId"] == "acc", body["bucketName"] == "notes" else { return reply(name, ["buckets": []]) }
        return reply(name, ["buckets": [["bucketId": "bucket-1", "bucketName": "notes"]]])
      case "b2_create_key":
        keys.withLockedValue { $0.append("key") }
        var made = body
        made.append("applicationKeyId", "key")
        made.append("applicationKey", "K-secret")
        made.append("expirationTimestamp", 1_800_000_060_000)
        return reply(name, .object(made))
      case "b2_delete_key":
        let isKnown = keys.withLockedValue { keys in
          defer { keys.removeAll { body["applicationKeyId"] == .string($0) } }
          return keys.contains { body["applicationKeyId"] == .string($0) }
        }
        return isKnown ? reply(name, .object(body)) : refusal(400, "bad_request", "Application key does not exist")
      default: return refusal(400, "bad_request", "no such call")
      }
    }

    private func reply(_ name: String, _ document: JSONValue) -> HTTPTransportResponse {
      guard case .object(let object) = document else { return .text("") }
      return .text(JSONValue.object(twist(name, object)).text())
    }

    private func refusal(_ status: Int, _ code: String, _ message: String) -> HTTPTransportResponse {
      .text(
        JSONValue.object(
          JSONObject([
            .init("status", .integer(Int64(status))), .init("code", .string(code)), .init("message", .string(message)),
          ])
        ).text(), status: status)
    }
  }

  private func factory(_ service: Service, bucket: String = "notes") throws -> (B2KeyFactory, StubTransport) {
    let transport = StubTransport { try service.answer($0) }
    let key = B2ApplicationKey(id: "id", secret: SecretText("secret"))
    return (try B2KeyFactory(bucket: bucket, key: key, transport: transport, clock: time.clock), transport)
  }

  private func inbound(_ actions: StorageActions = [.write, .list]) throws -> AccessTokenOptions {
    AccessTokenOptions(.none.adding(actions, in: try RemotePath("7f3a/inbound")), validSeconds: 60, name: "anna-phone")
  }

  @Test("A key has the requested capabilities, folder and expiry")
  func key() async throws {
    let (factory, transport) = try factory(Service())
    let key = try await factory.makeToken(try inbound([.read, .write, .delete, .list]))
    #expect(key.id == "key" && key.secret.value == "K-secret")
    #expect(key.s3Credentials == S3Credentials(accessKey: "key", secret: "K-secret"))
    #expect(key.expires == 1_800_000_060_000)
    #expect(
      transport.sent.last?.text
        == #"{"capabilities":["listFiles","readFiles","writeFiles","deleteFiles"],"keyName":"anna-phone","validDurationInSeconds":60,"#
        + #""bucketId":"bucket-1","namePrefix":"7f3a/inbound/","accountId":"acc"}"#)
    #expect(transport.sent.dropFirst().allSatisfy { $0.url.host == "api001.example" && $0.method == "POST" })
  }

  @Test("A key is revoked at once, and revoking it again is no error")
  func deletion() async throws {
    let service = Service()
    let (factory, _) = try factory(service)
    let key = try await factory.makeToken(try inbound())
    try await factory.deleteKey(key.id)
    #expect(service.keys.withLockedValue { $0 } == [])
    try await factory.deleteKey(key.id)
  }

  @Test("An expired session is renewed once")
  func expiredSession() async throws {
    let service = Service()
    let (factory, transport) = try factory(service)
    _ = try await factory.makeToken(try inbound())
    service.sessions.withLockedValue { $0 += 1 }
    _ = try await factory.makeToken(try inbound())
    #expect(transport.sent.filter { $0.url.path.hasSuffix("b2_authorize_account") }.count == 2)
  }

  @Test(
    "A key with other capabilities than requested is deleted and not returned",
    arguments: [
      ("capabilities", JSONValue.array(["listFiles", "writeFiles", "deleteFiles"])), ("namePrefix", ""),
      ("namePrefix", "7f3a/"),
      ("bucketId", "another"), ("bucketId", .null), ("expirationTimestamp", .null),
    ])
  func widerKey(_ name: String, _ value: JSONValue) async throws {
    let service = Service { call, answer in
      guard call == "b2_create_key" else { return answer }
      var answer = answer
      answer.members.removeAll { $0.name == name }
      answer.append(name, value)
      return answer
    }
    let (factory, _) = try factory(service)
    let options = try inbound()
    #expect(await code { _ = try await factory.makeToken(options) } == .invalidAnswer)
    #expect(service.keys.withLockedValue { $0 } == [])
  }

  @Test("A token is not sent to an unencrypted address from the answer")
  func downgrade() async throws {
    let service = Service { call, answer in
      guard call == "b2_authorize_account" else { return answer }
      var answer = answer
      answer.members.removeAll { $0.name == "apiInfo" }
      answer.append("apiInfo", ["storageApi": ["apiUrl": "http://api001.example"]])
      return answer
    }
    let (factory, transport) = try factory(service)
    let options = try inbound()
    #expect(await code { _ = try await factory.makeToken(options) } == .invalidAnswer)
    #expect(transport.sent.count == 1)
  }

  @Test("Permissions that a key cannot express, and invalid names, are refused without a request")
  func limits() async throws {
    let (factory, transport) = try factory(Service())
    let folder = try RemotePath("a")
    for permissions: StoragePermissions in [
      .none, .none.adding(.read, to: folder), .readingAll(writing: folder),
    ] {
      #expect(await code { _ = try await factory.makeToken(AccessTokenOptions(permissions)) } == .inexpressible)
    }
    for name in ["", "anna phone", "ä", String(repeating: "x", count: 101)] {
      let options = AccessTokenOptions(.reading, name: name)
      #expect(await code { _ = try await factory.makeToken(options) } == .invalidSetting)
    }
    for seconds in [0, Int64(1000 * 86_400)] {
      let options = AccessTokenOptions(.reading, validSeconds: seconds)
      #expect(await code { _ = try await factory.makeToken(options) } == .invalidSetting)
    }
    #expect(transport.sent.isEmpty)
  }

  @Test("A missing bucket and a wrong key are named in the error")
  func refusals() async throws {
    let (missing, _) = try factory(Service(), bucket: "other")
    let options = try inbound()
    var error = await #expect(throws: StorageError.self) { try await missing.makeToken(options) }
    #expect(error?.message.hasPrefix("there is no bucket called other") == true)
    let service = Service()
    let wrong = try B2KeyFactory(
      bucket: "notes", key: B2ApplicationKey(id: "id", secret: SecretText("guess")),
      transport: StubTransport { try service.answer($0) })
    error = await #expect(throws: StorageError.self) { try await wrong.makeToken(options) }
    #expect(error?.code.rawValue == "unauthorized")
    #expect(error.map { !"\($0)".contains("guess") } == true)
  }

  @Test("A call whose answer is lost is not repeated: the first key would be unknown")
  func lostAnswer() async throws {
    let service = Service()
    let transport = StubTransport { request in
      let answer = try service.answer(request)
      if request.url.path.hasSuffix("b2_create_key") { throw StorageError(.interrupted, "gone") }
      return answer
    }
    let factory = try B2KeyFactory(
      bucket: "notes", key: B2ApplicationKey(id: "id", secret: SecretText("secret")), transport: transport)
    let options = try inbound()
    await #expect(throws: StorageError.self) { try await factory.makeToken(options) }
    #expect(service.keys.withLockedValue { $0.count } == 1)
  }
}
