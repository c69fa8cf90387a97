import Dispatch
import NIOCore
import NIOHTTP1

/// Hears the requests of one connection, one at a time, and answers them.
final class RequestHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  /// How far the request is.
  private enum State {
    /// None is there.
    case waiting
    /// Its body is coming.
    case reading(PageRequest, body: [UInt8])
    /// It is being answered.
    case answering
    /// It was the last one of the connection.
    case ending
  }

  private let gate: RequestGate
  private let size: RequestSizeHandler
  private let worker: PageWorker
  private let connections: OpenConnections
  private var state = State.waiting
  /// True if a browser wants the header alone.
  private var isHead = false
  /// True if the connection stays open for another request.
  private var isKept = true
  private var deadline: Scheduled<Void>?

  /// How long a closing connection still reads, in milliseconds.
  private static let lingering: Int64 = 1_000

  init(_ gate: RequestGate, _ size: RequestSizeHandler, _ worker: PageWorker, _ connections: OpenConnections) {
    self.gate = gate
    self.size = size
    self.worker = worker
    self.connections = connections
  }

  func channelActive(context: ChannelHandlerContext) { setDeadline(gate.limits.milliseconds, context) }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    state = .ending
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head, context)
    case .body(let bytes): add(bytes, context)
    case .end: end(context)
    }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    guard case .waiting = state else {
      // No browser sends a second request before the first one is answered.
      isKept = false
      return
    }
    size.headHasEnded()
    isHead = head.method == .HEAD
    isKept = head.isKeepAlive
    switch gate.verdict(on: head) {
    case .accepted(let request):
      connections.trust(context.channel)
      state = .reading(request, body: [])
    case .refused(let response): refuse(response, context)
    }
  }

  private func add(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
    guard case .reading(let request, var body) = state else { return }
    // Moved out of the state meanwhile, because the bytes would be copied with every piece.
    state = .answering
    body.append(contentsOf: bytes.readableBytesView)
    state = .reading(request, body: body)
    if body.count > gate.limits.bodyBytes { refuse(.text(.tooLarge, "The form is too large."), context) }
  }

  private func end(_ context: ChannelHandlerContext) {
    guard case .reading(var request, let body) = state else { return }
    size.requestHasEnded()
    if request.method == .post {
      guard let form = FormFields(parsing: body) else {
        return refuse(.text(.badRequest, "The form cannot be read."), context)
      }
      request.form = form
    }
    state = .answering
    deadline?.cancel()
    let loop = context.eventLoop
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: loop)
    worker.answer(request) { response in
      loop.execute { bound.value.handler.send(response, bound.value.context) }
    }
  }

  /// Answers a request before its end, of which the rest is unknown.
  private func refuse(_ response: PageResponse, _ context: ChannelHandlerContext) {
    isKept = false
    state = .answering
    send(response, context)
  }

  private func send(_ response: PageResponse, _ context: ChannelHandlerContext) {
    guard case .answering = state else { return }
    setDeadline(gate.limits.milliseconds, context)
    var headers = HTTPHeaders(response.allHeaders)
    if !isKept { headers.add(name: "Connection", value: "close") }
    let status = HTTPResponseStatus(statusCode: response.status.rawValue)
    context.write(
      wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))), promise: nil)
    if !isHead, !response.body.isEmpty {
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: response.body)))), promise: nil)
    }
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
      bound.value.handler.haveSent(bound.value.context)
    }
  }

  private func haveSent(_ context: ChannelHandlerContext) {
    guard case .answering = state else { return }
    guard !isKept else {
      state = .waiting
      return setDeadline(gate.limits.milliseconds, context)
    }
    state = .ending
    // A connection that is closed before everything was read is reset, and the answer is lost.
    context.close(mode: .output, promise: nil)
    setDeadline(Self.lingering, context)
  }

  /// Closes the connection after some time, unless that is put off.
  private func setDeadline(_ milliseconds: Int64, _ context: ChannelHandlerContext) {
    deadline?.cancel()
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    deadline = context.eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
      bound.value.close(promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch (error, state) {
    case (_, .ending): break
    // Errors in early input do not change the answer.
    case (is RequestSizeHandler.Excess, .answering), (is HTTPParserError, .answering): isKept = false
    case (let excess as RequestSizeHandler.Excess, _):
      refuse(
        excess.isInHead
          ? .text(.headTooLarge, "The address or the header fields are too long.")
          : .text(.tooLarge, "The form is too large."), context)
    case (is HTTPParserError, _): refuse(.text(.badRequest, "This is no request of HTTP."), context)
    default: context.close(promise: nil)
    }
  }
}

/// Refuses endless input of a connection before it is stored.
final class RequestSizeHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// The request is larger than any that is heard.
  struct Excess: Error {
    /// True if that was found before its header fields had come to an end.
    let isInHead: Bool
  }

  private let limits: ServerLimits
  private var byteCount = 0
  private var hasHead = false
  private var isExceeded = false

  init(_ limits: ServerLimits) { self.limits = limits }

  /// The next bytes belong to the body.
  func headHasEnded() { hasHead = true }

  /// The next bytes belong to another request.
  func requestHasEnded() {
    byteCount = 0
    hasHead = false
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isExceeded else { return }
    byteCount += unwrapInboundIn(data).readableBytes
    // These bytes may be the end of their part.
    context.fireChannelRead(data)
    guard byteCount > limits.headBytes + (hasHead ? 2 * limits.bodyBytes : 0) else { return }
    isExceeded = true
    context.fireErrorCaught(Excess(isInHead: !hasHead))
  }
}
