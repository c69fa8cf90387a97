import BuckiaStorage

/// What a server answers: the status and header fields at once, the bytes while they come.
public struct HTTPTransportResponse: Sendable {
  /// The status.
  public var status: Int
  /// The header fields.
  public var headers: HTTPHeaders
  /// The bytes. Whoever does not read them to the end closes the connection.
  public var body: ByteChunks

  /// Makes an answer.
  public init(status: Int, headers: HTTPHeaders, body: ByteChunks) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}
