import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1

/// Which requests are the answer to a sign-in.
struct LoopbackGate: Sendable {
  /// The path that browsers come back to.
  static let path = "/signed-in"

  let accepts = NIOLockedValueBox<@Sendable (String) -> Bool>({ _ in false })
  /// The host and port that requests name. A web site whose name leads here names another.
  let authority = NIOLockedValueBox("")

  enum Verdict { case answer, unknown, foreign }

  func verdict(_ head: HTTPRequestHead) -> Verdict {
    guard head.headers["Host"] == [authority.withLockedValue { $0 }], head.method == .GET else { return .foreign }
    let path = head.uri.utf8.prefix { $0 != UInt8(ascii: "?") }
    guard path.elementsEqual(Self.path.utf8) else { return .unknown }
    return accepts.withLockedValue { $0 }(head.uri) ? .answer : .foreign
  }
}

/// Answers one connection.
final class LoopbackHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let gate: LoopbackGate
  private let found: EventLoopPromise<String>
  private var head: HTTPRequestHead?

  init(_ gate: LoopbackGate, _ found: EventLoopPromise<String>) {
    self.gate = gate
    self.found = found
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body: break
    case .end:
      guard let head else { return }
      self.head = nil
      switch gate.verdict(head) {
      case .answer:
        reply(context, .ok, "This is done. You can close this window and go back to the app.")
        found.succeed(head.uri)
      case .unknown: reply(context, .notFound, "There is nothing here.")
      case .foreign: reply(context, .badRequest, "This does not belong to the sign-in that is under way.")
      }
    }
  }

  private func reply(_ context: ChannelHandlerContext, _ status: HTTPResponseStatus, _ text: String) {
    let body = ByteBuffer(string: "<!doctype html><meta charset=\"utf-8\"><title>Sign-in</title><p>\(text)</p>\n")
    let headers: NIOHTTP1.HTTPHeaders = [
      "Content-Type": "text/html; charset=utf-8", "Content-Length": "\(body.readableBytes)", "Connection": "close",
      // The address holds the code.
      "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    ]
    context.write(
      wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    context.close(promise: nil)
  }

  /// What is no HTTP ends the connection.
  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
