import BuckiaStorage
import Testing

@testable import BuckiaSync

/// The keys and numbers are those that AWS publishes: the Signature Version 4 test suite, and the examples of the S3
/// API reference (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>).
@Suite("Signatures for S3")
struct SignatureV4Tests {
  /// A case from the documentation of S3.
  struct S3Example: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let method: String
    let url: String
    let headers: HTTPHeaders
    let payload: String
    let signature: String
  }

  private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  private static let bucket = "https://examplebucket.s3.amazonaws.com"

  private static let examples = [
    S3Example(
      testDescription: "GET Object", method: "GET", url: "\(bucket)/test.txt", headers: ["Range": "bytes=0-9"],
      payload: empty, signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    S3Example(
      testDescription: "PUT Object", method: "PUT", url: "\(bucket)/test%24file.text",
      headers: ["Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"],
      payload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    S3Example(
      testDescription: "GET Bucket Lifecycle", method: "GET", url: "\(bucket)/?lifecycle", headers: [:], payload: empty,
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    S3Example(
      testDescription: "List Objects", method: "GET", url: "\(bucket)/?max-keys=2&prefix=J", headers: [:],
      payload: empty,
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  private static let s3 = SignatureV4(
    credentials: S3Credentials(
      accessKey: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), region: "us-east-1",
    service: "s3")
  /// 24 May 2013.
  private static let day = ISOTime(seconds: 1_369_353_600)

  @Test("Signatures equal those in the documentation of S3", arguments: examples)
  func documented(example: S3Example) throws {
    var request = HTTPTransportRequest(example.method, try HTTPAddress(example.url), headers: example.headers)
    request.headers[S3Authorization.payloadField] = example.payload
    Self.s3.sign(&request, payload: example.payload, at: Self.day)
    #expect(request.headers["Authorization"]?.hasSuffix("Signature=\(example.signature)") == true)
    #expect(request.headers["X-Amz-Date"] == "20130524T000000Z")
  }

  @Test("A presigned address equals the one in the documentation of S3")
  func presigned() throws {
    let address = Self.s3.presigned("GET", try HTTPAddress("\(Self.bucket)/test.txt"), seconds: 86_400, at: Self.day)
    #expect(
      address.queryItems.first { $0.0 == "X-Amz-Signature" }?.1
        == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
  }

  /// A case of the test suite: the request, and the signature in its `.authz` file.
  struct SuiteCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let method: String
    let target: String
    var headers: HTTPHeaders = [:]
    var body = ""
    let signature: String
  }

  private static let suite = [
    SuiteCase(
      testDescription: "get-vanilla", method: "GET", target: "/",
      signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    SuiteCase(
      testDescription: "get-vanilla-query-order-key-case", method: "GET", target: "/?Param2=value2&Param1=value1",
      signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    SuiteCase(
      testDescription: "post-vanilla", method: "POST", target: "/",
      signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
  ]

  @Test("Signatures equal those of the test suite", arguments: suite)
  func testSuite(example: SuiteCase) throws {
    let signature = SignatureV4(
      credentials: S3Credentials(accessKey: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
      region: "us-east-1", service: "service")
    var request = HTTPTransportRequest(
      example.method, try HTTPAddress("https://example.amazonaws.com\(example.target)"), headers: example.headers)
    signature.sign(&request, payload: Self.empty, at: ISOTime(seconds: 1_440_938_160))
    #expect(request.headers["Authorization"]?.hasSuffix("Signature=\(example.signature)") == true)
  }

  @Test("Repeated spaces become one, and values of one name are joined")
  func canonicalFields() {
    var headers: HTTPHeaders = ["B": "  two   words ", "a": "1"]
    headers.add("A", "2")
    let (lines, names) = SignatureV4.canonical(headers)
    #expect(lines == "a:1,2\nb:two words\n")
    #expect(names == "a;b")
  }

  @Test("Secrets are not printed")
  func secrets() {
    let credentials = S3Credentials(accessKey: "AKID", secret: "hidden words", sessionToken: "hidden token")
    var dumped = ""
    dump(credentials, to: &dumped)
    for text in ["\(credentials)", String(reflecting: credentials), dumped] {
      #expect(!text.contains("hidden"))
      #expect(text.contains("AKID"))
    }
  }
}
