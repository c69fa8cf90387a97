import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix

/// A port of this computer, to which nothing but this computer can connect, and to which a browser comes back from a sign-in (RFC 8252, section 7.3).
final class LoopbackListener: Sendable {
  private let channel: any Channel
  private let found: EventLoopPromise<String>
  private let accepts: NIOLockedValueBox<@Sendable (String) -> Bool>

  /// Where browsers come back to.
  let address: String

  /// Opens it.
  ///
  /// - Parameter port: The port; 0 for any that is free.
  /// - Throws: `StorageError` with `noListener`, or `invalidSetting` for a number that is no port.
  init(port: Int) async throws {
    guard (0...65_535).contains(port) else {
      throw StorageError(.invalidSetting, "\(port) is no port; they go from 1 to 65535, and 0 is any that is free")
    }
    let group = MultiThreadedEventLoopGroup.singleton
    let found = group.next().makePromise(of: String.self)
    let accepts = NIOLockedValueBox<@Sendable (String) -> Bool>({ _ in false })
    do {
      channel = try await ServerBootstrap(group: group)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
            try channel.pipeline.syncOperations.addHandler(LoopbackHandler(accepts, found))
          }
        }
        .bind(host: "127.0.0.1", port: port).get()
    } catch {
      found.fail(error)
      throw StorageError(
        .noListener,
        "no port of this computer\(port == 0 ? "" : " (\(port))") could be opened for the browser's answer; "
          + "close what uses it, or sign in with a code", cause: error)
    }
    self.found = found
    self.accepts = accepts
    address = "http://\(LoopbackHandler.authority(of: channel))\(LoopbackHandler.path)"
  }

  /// Says what is the answer. Anything else is turned away, and waited on: other programs and web sites can connect, too.
  func accept(_ accepts: @escaping @Sendable (String) -> Bool) { self.accepts.withLockedValue { $0 = accepts } }

  /// What the browser has asked for.
  ///
  /// - Throws: `StorageError` with `signInExpired`; `CancellationError`.
  func target(within seconds: Int64) async throws -> String {
    let found = found
    let limit = channel.eventLoop.scheduleTask(in: .seconds(min(max(1, seconds), 86_400))) {
      found.fail(StorageError(.signInExpired, "the sign-in was not finished in time; begin again"))
    }
    defer { limit.cancel() }
    return try await withTaskCancellationHandler {
      try await found.futureResult.get()
    } onCancel: {
      found.fail(CancellationError())
    }
  }

  /// Takes no more connections. The port is free when this returns.
  func close() async {
    found.fail(CancellationError())
    channel.close(promise: nil)
    // A channel that has an error while it closes is closed all the same.
    try? await channel.closeFuture.get()
  }
}

/// Answers one connection.
private final class LoopbackHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  /// The path that browsers come back to.
  static let path = "/signed-in"

  private let accepts: NIOLockedValueBox<@Sendable (String) -> Bool>
  private let found: EventLoopPromise<String>
  private var head: HTTPRequestHead?

  init(_ accepts: NIOLockedValueBox<@Sendable (String) -> Bool>, _ found: EventLoopPromise<String>) {
    self.accepts = accepts
    self.found = found
  }

  /// The host and port that requests name. A web site whose name leads here names another.
  static func authority(of channel: any Channel) -> String { "127.0.0.1:\(channel.localAddress?.port ?? 0)" }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body: break
    case .end:
      guard let head else { return }
      self.head = nil
      let isOwn = head.headers["Host"] == [Self.authority(of: context.channel)] && head.method == .GET
      if isOwn, !head.uri.utf8.prefix(while: { $0 != UInt8(ascii: "?") }).elementsEqual(Self.path.utf8) {
        reply(context, .notFound, "There is nothing here.")
      } else if isOwn, accepts.withLockedValue({ $0 })(head.uri) {
        reply(context, .ok, "This is done. You can close this window and go back to the app.")
        found.succeed(head.uri)
      } else {
        reply(context, .badRequest, "This does not belong to the sign-in that is under way.")
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
