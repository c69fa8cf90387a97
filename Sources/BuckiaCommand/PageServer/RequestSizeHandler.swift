import NIOCore

/// Ends what a connection sends without an end, before anything of it is kept.
final class RequestSizeHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// The request is larger than any that is heard.
  struct Excess: Error {
    /// Whether that was found before its header fields had come to an end.
    let isInHead: Bool
  }

  private let limits: ServerLimits
  private var byteCount = 0
  private var hasHead = false
  private var isExceeded = false

  init(_ limits: ServerLimits) { self.limits = limits }

  /// What comes next belongs to the body.
  func headHasEnded() { hasHead = true }

  /// What comes next is another request.
  func requestHasEnded() {
    byteCount = 0
    hasHead = false
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isExceeded else { return }
    byteCount += unwrapInboundIn(data).readableBytes
    // What has come now may be the end of what it belongs to.
    context.fireChannelRead(data)
    guard byteCount > limits.headBytes + (hasHead ? 2 * limits.bodyBytes : 0) else { return }
    isExceeded = true
    context.fireErrorCaught(Excess(isInHead: !hasHead))
  }
}
