import BuckiaBytes
import BuckiaStorage

/// Makes keys of Backblaze B2 that allow the same in one folder of a bucket, or in all of it, and end by themselves.
///
/// It uses the native API: <https://www.backblaze.com/apidocs/b2-create-key>. With such a key an ``S3Bucket`` is opened.
public struct B2KeyFactory: Sendable {
  private let account: B2Account
  private let bucket: String
  private let clock: TokenClock

  /// Names a bucket.
  ///
  /// - Parameters:
  ///   - bucket: The bucket's name.
  ///   - key: A key that may make others (`writeKeys`), delete them (`deleteKeys`) and look buckets up (`listBuckets`).
  ///   - transport: What brings requests there.
  ///   - endpoint: The address of the service.
  ///   - clock: What time it is.
  /// - Throws: `StorageError` with `invalidSetting`.
  public init(
    bucket: String, key: B2ApplicationKey, transport: any HTTPTransport,
    endpoint: String = "https://api.backblazeb2.com", clock: TokenClock = .system
  ) throws(StorageError) {
    account = try B2Account(key: key, transport: transport, endpoint: endpoint)
    self.bucket = bucket
    self.clock = clock
  }

  /// B2 wants less than 1,000 days.
  private static let secondsLimit: Int64 = 1000 * 86_400 - 1

  /// Creates a key, for less than 1,000 days. One that allows something else than was asked for is deleted again.
  public func makeToken(_ options: AccessTokenOptions) async throws -> B2ApplicationKey {
    let rule = try options.onlyRule(of: "a key of B2")
    let prefix: String?
    switch rule.place {
    case .everywhere: prefix = nil
    case .folder(let folder): prefix = "\(folder)/"
    case .object(let path):
      // Its name as a prefix would cover longer names, too.
      throw StorageError(
        .inexpressible, "a key of B2 is for a folder, not for one object (\(path)); make a presigned address")
    }
    guard options.name.utf8.count <= 100, !options.name.isEmpty,
      options.name.utf8.allSatisfy({ Self.isNameByte($0) })
    else {
      throw StorageError(.invalidSetting, "the name of a key of B2 has 1 to 100 letters of English, digits and hyphens")
    }
    _ = try options.expiry(from: clock.now(), limit: Self.secondsLimit)
    return try await account.makeKey(
      named: options.name, B2Account.capabilities(rule.actions), bucket: bucket, prefix: prefix,
      seconds: options.validSeconds)
  }

  /// Ends a key at once.
  ///
  /// - Parameter id: The key's id. One that has ended already is no error.
  /// - Throws: `StorageError`; `CancellationError`.
  public func deleteKey(_ id: String) async throws { try await account.deleteKey(id) }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"):
      true
    default: false
    }
  }
}

/// A key of Backblaze B2, with its secret.
public struct B2ApplicationKey: Sendable, Hashable {
  /// The key's id, which is no secret.
  public let id: String
  /// The secret part.
  public let secret: SecretText
  /// What B2 lets it do, in B2's words; empty if that is not known.
  public var capabilities: [String] = []
  /// The beginning that names have which it may use; nil for all.
  public var namePrefix: String?
  /// Until when it is good, in milliseconds since 1970; nil for no end.
  public var expires: Int64?

  /// Takes a key.
  public init(id: String, secret: SecretText) {
    self.id = id
    self.secret = secret
  }

  /// The key for the endpoint that speaks S3.
  public var s3Credentials: S3Credentials { S3Credentials(accessKey: id, secret: secret.value) }
}

/// An account of Backblaze B2 through its native API, version 3: <https://www.backblaze.com/apidocs/introduction-to-the-b2-native-api>.
actor B2Account {
  /// What B2 gives who has named a key: a token for a day, and where to go with it.
  private struct Session {
    let account: String
    let token: SecretText
    let api: HTTPAddress
  }

  private let key: B2ApplicationKey
  private let endpoint: HTTPAddress
  private let transport: any HTTPTransport
  private var session: Session?

  init(key: B2ApplicationKey, transport: any HTTPTransport, endpoint: String) throws(StorageError) {
    self.endpoint = try HTTPAddress(endpoint)
    self.key = key
    self.transport = transport
  }

  /// The words that B2 has for what may be done: <https://www.backblaze.com/docs/cloud-storage-application-key-capabilities>.
  static func capabilities(_ actions: StorageActions) -> [String] {
    let words: [(StorageActions, String)] = [
      (.list, "listFiles"), (.read, "readFiles"), (.write, "writeFiles"), (.delete, "deleteFiles"),
    ]
    return words.filter { actions.contains($0.0) }.map(\.1)
  }

  func makeKey(
    named name: String, _ capabilities: [String], bucket: String, prefix: String?, seconds: Int64
  ) async throws -> B2ApplicationKey {
    let bucketID = try await id(of: bucket)
    var wanted = JSONObject()
    wanted.append("capabilities", .strings(capabilities))
    wanted.append("keyName", .string(name))
    wanted.append("validDurationInSeconds", .integer(seconds))
    wanted.append("bucketId", .string(bucketID))
    if let prefix { wanted.append("namePrefix", .string(prefix)) }
    let answer = try await call("b2_create_key", wanted)
    var made = B2ApplicationKey(
      id: try answer.requiredText("applicationKeyId"), secret: SecretText(try answer.requiredText("applicationKey")))
    made.capabilities = try answer.texts("capabilities") ?? []
    made.namePrefix = try answer.text("namePrefix")
    made.expires = try answer.number("expirationTimestamp")
    // A key with more rights than requested is not handed out.
    guard Set(made.capabilities) == Set(capabilities), made.namePrefix ?? "" == prefix ?? "", made.expires != nil,
      try answer.text("bucketId") == bucketID
    else {
      try await deleteKey(made.id)
      throw StorageError(.invalidAnswer, "\(answer.origin) has made another key than was asked for; it was deleted")
    }
    return made
  }

  func deleteKey(_ id: String) async throws {
    do { _ = try await call("b2_delete_key", JSONObject([.init("applicationKeyId", .string(id))])) } catch let error
      as StorageError
    {
      // It has ended by itself, or an earlier attempt has deleted it.
      guard let fault = error.cause as? Fault, fault.status == 400, fault.says("does not exist") else { throw error }
    }
  }

  private func id(of bucket: String) async throws -> String {
    let session = try await authorized()
    let answer = try await call(
      "b2_list_buckets",
      JSONObject([.init("accountId", .string(session.account)), .init("bucketName", .string(bucket))]), session)
    guard case .array(let buckets)? = answer.object["buckets"] else { throw answer.fault("buckets") }
    for case .object(let found) in buckets where found["bucketName"] == .string(bucket) {
      if case .string(let id)? = found["bucketId"] { return id }
    }
    throw StorageError(
      .notFound,
      "there is no bucket called \(bucket.shown) that this key of B2 can see; check its name and the key")
  }

  // MARK: Requests

  /// What B2 says against a request.
  private struct Fault: Error, CustomStringConvertible {
    let status: Int
    let code: String
    let message: String
    var description: String { "\(code): \(message)" }
    func says(_ words: String) -> Bool { message.lowercased().contains(words) }
  }

  private func authorized() async throws -> Session {
    if let session { return session }
    let authorization = try BasicAuthorization(user: key.id, password: key.secret.value)
    let exchange = HTTPExchange(transport: transport, policy: RetryPolicy(), authorization: authorization)
    var address = endpoint
    address.path = "/b2api/v3/b2_authorize_account"
    let answer = try await JSONAnswer(
      exchange.perform(HTTPTransportRequest("GET", address)).response, from: address)
    guard case .object(let info)? = answer.object["apiInfo"], case .object(let storage)? = info["storageApi"],
      case .string(let text)? = storage["apiUrl"]
    else { throw answer.fault("apiUrl") }
    let api: HTTPAddress
    do throws(StorageError) { api = try HTTPAddress(text) } catch { throw answer.fault("apiUrl") }
    // The token would go unencrypted.
    guard api.isSecure || !endpoint.isSecure else { throw answer.fault("apiUrl") }
    let made = Session(
      account: try answer.requiredText("accountId"), token: SecretText(try answer.requiredText("authorizationToken")),
      api: api)
    guard made.token.value.isSafeInHeader else { throw answer.fault("authorizationToken") }
    session = made
    return made
  }

  /// Calls a function of the API, with a new session if the present one has ended.
  private func call(_ name: String, _ members: JSONObject, _ given: Session? = nil) async throws -> JSONAnswer {
    var session: Session
    if let given { session = given } else { session = try await authorized() }
    var isRenewed = false
    while true {
      var members = members
      if name == "b2_create_key" { members.append("accountId", .string(session.account)) }
      var address = session.api
      address.path = "/b2api/v3/\(name)"
      let request = HTTPTransportRequest(
        "POST", address,
        headers: ["Authorization": session.token.value, "Content-Type": "application/json"],
        body: .bytes(JSONValue.object(members).bytes()))
      // No retries: if the answer is lost, a second request would leave a first key that is in no list.
      var policy = RetryPolicy()
      if name == "b2_create_key" { policy.attempts = 1 }
      let exchange = HTTPExchange(transport: transport, policy: policy)
      let response = try await exchange.perform(request, accepting: [200, 400, 401, 403]).response
      let answer = try await JSONAnswer(response, from: address)
      if response.status == 200 { return answer }
      let fault = Fault(
        status: response.status, code: (try answer.text("code") ?? "no code").shown,
        message: (try answer.text("message") ?? "").shown)
      if !isRenewed, response.status == 401, ["expired_auth_token", "bad_auth_token"].contains(fault.code) {
        isRenewed = true
        self.session = nil
        session = try await authorized()
        continue
      }
      let code: StorageError.Code =
        response.status == 400 ? .invalidSetting : response.status == 401 ? .unauthorized : .forbidden
      throw StorageError(
        code,
        "Backblaze B2 refuses \(name): \(fault); the key needs the capabilities writeKeys, deleteKeys and listBuckets",
        cause: fault)
    }
  }
}
