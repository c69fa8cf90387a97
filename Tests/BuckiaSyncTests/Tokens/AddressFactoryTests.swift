import BuckiaSync
import BuckiaStorage
import Testing

@testable import BuckiaSync

@Suite("Making signed addresses")
struct AddressFactoryTests {
  private let time = TestClock()

  private var bunny: BunnyTokenFactory {
    get throws {
      try BunnyTokenFactory(address: "https://demo.b-cdn.net", key: SecretText("pull-zone-key"), clock: time.clock)
    }
  }

  private var bucket: S3AddressFactory {
    get throws {
      let bucket = try S3Bucket(
        S3Configuration(endpoint: "https://s3.example", region: "eu", bucket: "b"),
        credentials: S3Credentials(accessKey: "AK", secret: "s3cret"), transport: StubTransport { _ in .text("") })
      return S3AddressFactory(bucket, clock: time.clock)
    }
  }

  @Test("A Bunny.net address for a folder has the folder and the expiry in its token")
  func bunnyFolder() throws {
    let permissions = StoragePermissions.none.adding(.read, in: try RemotePath("7f3a/ä"))
    let made = try bunny.makeToken(AccessTokenOptions(permissions, validSeconds: 60))
    var rules = BunnyTokenRules(expires: time.now / 1000 + 60)
    rules.path = "/7f3a/ä/"
    #expect(made.address.value == (try rules.signed("https://demo.b-cdn.net/7f3a/%C3%A4/", key: "pull-zone-key")))
    #expect(made.expires == time.now + 60_000)
    #expect(made.permissions == permissions)
    #expect(!made.address.value.contains("pull-zone-key"))
  }

  @Test("A Bunny.net address for one object is for that object alone")
  func bunnyObject() throws {
    let made = try bunny.makeToken(AccessTokenOptions(.none.adding(.read, to: try RemotePath("a/b.jpg"))))
    #expect(made.address.value.hasPrefix("https://demo.b-cdn.net/a/b.jpg?token="))
    #expect(!made.address.value.contains("token_path"))
    let rules = BunnyTokenRules(expires: time.now / 1000 + 3600)
    #expect(made.address.value == (try rules.signed("https://demo.b-cdn.net/a/b.jpg", key: "pull-zone-key")))
  }

  @Test("A Bunny.net address can only express reading in one place")
  func bunnyLimits() async throws {
    let folder = try RemotePath("a")
    for permissions: StoragePermissions in [
      .none, .reading, .full, .none.adding(.write, in: folder), .none.adding([.read, .delete], in: folder),
      .none.adding(.read, in: folder).adding(.read, to: try RemotePath("b")),
    ] {
      #expect(
        await code { _ = try bunny.makeToken(AccessTokenOptions(permissions)) } == .inexpressible, "\(permissions)")
    }
    for seconds in [0, -1, Int64.max, Int64.min] {
      let options = AccessTokenOptions(.none.adding(.read, in: folder), validSeconds: seconds)
      #expect(await code { _ = try bunny.makeToken(options) } == .invalidSetting)
    }
    #expect(await code { _ = try BunnyTokenFactory(address: "demo", key: SecretText("k")) } == .invalidSetting)
    #expect(await code { _ = try BunnyTokenFactory(address: "https://demo", key: SecretText("")) } == .invalidSetting)
  }

  @Test("A presigned address is for one object and one action", arguments: [StorageActions.read, .write, .delete])
  func presigned(_ action: StorageActions) throws {
    let made = try bucket.makeToken(
      AccessTokenOptions(.none.adding(action, to: try RemotePath("a/b c")), validSeconds: 60))
    #expect(made.address.value.hasPrefix("https://s3.example/b/a/b%20c?"))
    #expect(made.address.value.contains("X-Amz-Expires=60"))
    #expect(!made.address.value.contains("s3cret"))
  }

  @Test("A presigned address cannot express other permissions")
  func presignedLimits() async throws {
    let object = try RemotePath("a")
    for permissions: StoragePermissions in [
      .none, .none.adding(.read, in: object), .none.adding([.read, .write], to: object),
      .none.adding(.list, to: object),
      .none.adding(.read, to: object).adding(.write, to: object), .none.adding(.read, in: nil),
    ] {
      #expect(
        await code { _ = try bucket.makeToken(AccessTokenOptions(permissions)) } == .inexpressible, "\(permissions)")
    }
    let long = AccessTokenOptions(.none.adding(.read, to: object), validSeconds: 604_801)
    #expect(await code { _ = try bucket.makeToken(long) } == .invalidSetting)
  }
}
