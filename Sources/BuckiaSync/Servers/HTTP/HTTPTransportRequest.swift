import BuckiaStorage

/// A request to a server, ready to be sent.
public struct HTTPTransportRequest: Sendable {
  /// The method, in capitals.
  public var method: String
  /// Where it goes.
  public var url: HTTPAddress
  /// The header fields, without `Host` and `Content-Length`, which the transport adds.
  public var headers: HTTPHeaders
  /// The bytes that go along.
  public var body: Body

  /// What goes along with a request.
  public enum Body: Sendable {
    /// Nothing, and no `Content-Length`.
    case none
    /// Bytes.
    case bytes([UInt8])
    /// Part of a file or of bytes, read while it is sent.
    case contents(StorageContents, Range<Int64>)

    /// How many bytes.
    public var byteCount: Int64 {
      switch self {
      case .none: 0
      case .bytes(let bytes): Int64(bytes.count)
      case .contents(_, let range): Int64(range.count)
      }
    }
  }

  /// Makes a request.
  public init(_ method: String, _ url: HTTPAddress, headers: HTTPHeaders = [:], body: Body = .none) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}
