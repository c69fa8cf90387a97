import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// An HTTP server on the loopback interface that answers, or fails in any way that a test chooses.
public final class FaultServer: Sendable {
  /// A complete request.
  public struct Request: Sendable {
    /// The method, in capitals.
    public let method: String
    /// The path and the query, as sent.
    public let target: String
    /// The header fields, in order.
    public let headers: [(name: String, value: String)]
    /// The body.
    public let body: [UInt8]

    /// The value of a header field; nil if there is none.
    public func header(_ name: String) -> String? {
      headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }
  }

  /// What the server does.
  public enum Behaviour: Sendable {
    /// Sends an answer.
    case answer(Int, headers: [(String, String)] = [], body: [UInt8] = [])
    /// Closes the connection without an answer.
    case reset
    /// Sends nothing more, and keeps the connection open.
    case stall
    /// Announces a number of bytes, sends some of them, and closes the connection.
    case truncate(announced: Int, sent: [UInt8], headers: [(String, String)] = [])
    /// Announces a number of bytes, sends some of them, and falls silent.
    case stallAfter(announced: Int, sent: [UInt8], headers: [(String, String)] = [])
    /// Sends bytes that are not HTTP.
    case garbage([UInt8])
  }

  /// Decides what the server does with a request.
  public typealias Handler = @Sendable (Request) -> Behaviour

  private let channel: any Channel
  private let seen = NIOLockedValueBox<[Request]>([])

  /// The port.
  public var port: Int { channel.localAddress?.port ?? 0 }
  /// True if connections are encrypted.
  private let isSecure: Bool
  /// The address.
  public var address: String { "\(isSecure ? "https://localhost" : "http://127.0.0.1"):\(port)" }
  /// The received requests, in order.
  public var requests: [Request] { seen.withLockedValue { $0 } }
  /// Forgets the received requests.
  public func forgetRequests() { seen.withLockedValue { $0 = [] } }

  /// Starts a server on a free port.
  ///
  /// - Parameters:
  ///   - certificate: Files with a certificate and its key in PEM format, for encrypted connections; nil for plain
  ///     ones.
  ///   - handler: Decides what the server does with a request.
  public init(
    certificate: (certificate: String, key: String)? = nil, _ handler: @escaping Handler
  ) async throws {
    let seen = seen
    isSecure = certificate != nil
    let tls = try certificate.map { files in
      try NIOSSLContext(
        configuration: .makeServerConfiguration(
          certificateChain: NIOSSLCertificate.fromPEMFile(files.certificate).map { .certificate($0) },
          privateKey: .privateKey(NIOSSLPrivateKey(file: files.key, format: .pem))))
    }
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 256)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let operations = channel.pipeline.syncOperations
          if let tls { try operations.addHandler(NIOSSLServerHandler(context: tls)) }
          try operations.configureHTTPServerPipeline(withPipeliningAssistance: false)
          try operations.addHandler(
            Connection { request in
              seen.withLockedValue { $0.append(request) }
              return handler(request)
            })
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  deinit { channel.close(promise: nil) }

  private final class Connection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let handler: Handler
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []

    init(_ handler: @escaping Handler) { self.handler = handler }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head):
        self.head = head
        body = []
        if head.headers["Expect"].contains("100-continue") {
          context.writeAndFlush(
            wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
        }
      case .body(let buffer): body += Array(buffer.readableBytesView)
      case .end:
        guard let head else { return }
        let request = Request(
          method: head.method.rawValue, target: head.uri, headers: head.headers.map { ($0.name, $0.value) }, body: body)
        act(handler(request), on: context, isHead: head.method == .HEAD)
      }
    }

    private func act(_ behaviour: Behaviour, on context: ChannelHandlerContext, isHead: Bool) {
      switch behaviour {
      case .answer(let status, let headers, let body):
        send(status, headers, length: body.count, on: context)
        if !isHead { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      case .reset: context.close(promise: nil)
      case .stall: break
      case .truncate(let announced, let sent, let headers):
        send(200, headers, length: announced, on: context)
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: sent))))).whenComplete { _ in
          channel.close(promise: nil)
        }
      case .stallAfter(let announced, let sent, let headers):
        send(200, headers, length: announced, on: context)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: sent)))), promise: nil)
      case .garbage(let bytes):
        let channel = context.channel
        // Bypasses the encoder, which would turn the bytes into HTTP.
        context.pipeline.context(handlerType: HTTPResponseEncoder.self).whenSuccess { encoder in
          encoder.writeAndFlush(NIOAny(ByteBuffer(bytes: bytes))).whenComplete { _ in channel.close(promise: nil) }
        }
      }
    }

    private func send(_ status: Int, _ headers: [(String, String)], length: Int, on context: ChannelHandlerContext) {
      var fields = HTTPHeaders(headers)
      if !fields.contains(name: "Content-Length") { fields.add(name: "Content-Length", value: "\(length)") }
      let head = HTTPResponseHead(
        version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: fields)
      context.write(wrapOutboundOut(.head(head)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
