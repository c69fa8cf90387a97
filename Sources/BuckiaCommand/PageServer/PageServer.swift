import NIOCore
import NIOHTTP1
import NIOPosix

/// Hands out pages on a port of this computer, to which nothing but this computer can connect, and only to those who know
/// a random part of the address.
///
/// ```swift
/// let server = try PageServer(port: 0, token: PageToken()) { request in .text(.ok, "Hello") }
/// print(server.address)
/// try server.waitUntilClosed()
/// ```
///
/// Requests that name another host, or that a page of another site has sent, are refused: with a name that leads to this
/// computer, or with a form, a web site could ask for anything otherwise.
package final class PageServer: Sendable {
  private let channel: any Channel
  private let token: PageToken

  /// The port.
  package let port: Int

  /// The address of the first page.
  package var address: String { "http://127.0.0.1:\(port)/\(token.text)/" }

  /// Opens the port, and answers from then on.
  ///
  /// - Parameters:
  ///   - port: The port; 0 for any that is free.
  ///   - token: What addresses begin with.
  ///   - limits: How much anybody may take up.
  ///   - respond: Answers a request. It may take its time, and is called in one thread for what changes something, and in
  ///     another one for everything else.
  /// - Throws: `PageServerError` when the port cannot be opened.
  package init(
    port: Int, token: PageToken, limits: ServerLimits = ServerLimits(),
    respond: @escaping @Sendable (PageRequest) -> PageResponse
  ) throws(PageServerError) {
    let worker = PageWorker(respond)
    let connections = OpenConnections(limit: limits.connections)
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        // One that is refused is closed.
        guard connections.admit(channel), let port = channel.localAddress?.port else {
          return channel.eventLoop.makeFailedFuture(ChannelError.inputClosed)
        }
        return channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          let size = RequestSizeHandler(limits)
          try pipeline.addHandler(size)
          try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
          let gate = RequestGate(token: token, port: port, limits: limits)
          try pipeline.addHandler(RequestHandler(gate, size, worker, connections))
        }
      }
    do {
      channel = try bootstrap.bind(host: "127.0.0.1", port: port).wait()
    } catch {
      let name = port == 0 ? "no port" : "the port \(port)"
      throw PageServerError(
        description: "\(name) of this computer could \(port == 0 ? "" : "not ")be opened: \(error)"
          + (port == 0 ? "" : "; choose another one, or 0 for any that is free"))
    }
    self.port = channel.localAddress?.port ?? port
    self.token = token
  }

  /// Waits until the port is closed.
  ///
  /// - Throws: What has closed it.
  package func waitUntilClosed() throws { try channel.closeFuture.wait() }

  /// Closes the port. Connections that are there end by themselves.
  package func close() { channel.close(promise: nil) }

  deinit { channel.close(promise: nil) }
}
