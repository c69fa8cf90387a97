import BuckiaStorage
import Testing

@testable import BuckiaSync

/// Addresses that begin with s3://.
@Suite struct S3AddressTests {
  private static let keys = ["AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"]

  private func parts(
    _ text: String, _ environment: [String: String] = [:]
  ) throws -> (S3Configuration, S3Credentials, String?) {
    let address = try S3Address(text, environment: Self.keys.merging(environment) { $1 })
    guard case .s3(let configuration, let credentials) = address.account.type else { throw S3AddressError() }
    return (configuration, credentials, address.folder?.text)
  }

  private struct S3AddressError: Error {}

  @Test func `the bucket, the folder and the server are read`() throws {
    let plain = try parts("s3://photos")
    #expect(
      plain.0 == S3Configuration(endpoint: "https://s3.us-east-1.amazonaws.com", region: "us-east-1", bucket: "photos"))
    #expect(plain.1 == S3Credentials(accessKey: "key", secret: "secret"))
    #expect(plain.2 == nil)
    let whole = try parts("s3://photos/a%20b/c/?endpoint=http://127.0.0.1:9000&region=here")
    #expect(whole.0 == S3Configuration(endpoint: "http://127.0.0.1:9000", region: "here", bucket: "photos"))
    #expect(whole.2 == "a b/c")
    let short = try parts(
      "s3://photos?endpoint=s3.example.com", ["AWS_REGION": "there", "AWS_ENDPOINT_URL": "http://no"])
    #expect(short.0 == S3Configuration(endpoint: "https://s3.example.com", region: "there", bucket: "photos"))
  }

  @Test func `the variables of Litestream come first`() throws {
    let found = try parts(
      "s3://photos",
      ["LITESTREAM_ACCESS_KEY_ID": "own", "LITESTREAM_SECRET_ACCESS_KEY": "hidden", "AWS_SESSION_TOKEN": "t"])
    #expect(found.1 == S3Credentials(accessKey: "own", secret: "hidden", sessionToken: "t"))
  }

  @Test(arguments: ["s3://", "s3:///folder", "s3://photos?regoin=x", "s3://key:secret@photos", "s3://photos/../x"])
  func `other addresses are refused`(text: String) {
    #expect(throws: StorageError.self) { try S3Address(text, environment: Self.keys) }
  }

  @Test func `missing credentials are named`() {
    #expect { try S3Address("s3://photos", environment: ["AWS_ACCESS_KEY_ID": "key"]) } throws: {
      "\($0)".contains("AWS_SECRET_ACCESS_KEY")
    }
  }
}
