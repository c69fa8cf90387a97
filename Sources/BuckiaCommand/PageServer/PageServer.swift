import BuckiaBytes
import Dispatch
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix

/// Serves pages on a port of this computer, only to programs on this computer, and only to those that know a random
/// part of the address.
///
/// ```swift
/// let server = try PageServer(port: 0, token: PageToken()) { request in .text(.ok, "Hello") }
/// print(server.address)
/// try server.waitUntilClosed()
/// ```
///
/// Requests that name another host, or that a page of another site has sent, are refused: otherwise a web site could
/// send requests with a host name for this computer, or with a form.
final class PageServer: Sendable {
  private let channel: any Channel
  private let token: PageToken

  /// The port.
  let port: Int

  /// The address of the first page.
  var address: String { "http://127.0.0.1:\(port)/\(token.text)/" }

  /// Opens the port, and answers from then on.
  ///
  /// - Parameters:
  ///   - port: The port; 0 for any that is free.
  ///   - token: What addresses begin with.
  ///   - limits: The limits of connections and requests.
  ///   - respond: Answers a request. It may block. Requests that change something are answered on one thread, all
  ///     others on a second one.
  /// - Throws: `PageServerError` when the port cannot be opened.
  init(
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
  func waitUntilClosed() throws { try channel.closeFuture.wait() }

  /// Closes the port. Connections that are there end by themselves.
  func close() { channel.close(promise: nil) }

  deinit { channel.close(promise: nil) }
}

/// Why a server could not be started.
struct PageServerError: Error, CustomStringConvertible {
  /// The error, and the remedy.
  let description: String
}

/// The connections that are open, up to a limit.
///
/// At the limit a new connection replaces the oldest one without an accepted request: programs that do not know the
/// address cannot block those that do.
final class OpenConnections: Sendable {
  private typealias Entry = (channel: any Channel, isTrusted: Bool)

  private let limit: Int
  /// In the order in which they were opened.
  private let entries = NIOLockedValueBox<[Entry]>([])

  init(limit: Int) { self.limit = limit }

  /// Adds a new connection.
  ///
  /// - Returns: False if there is no place for it.
  func admit(_ channel: any Channel) -> Bool {
    let (isAdmitted, oldest) = entries.withLockedValue { entries -> (Bool, (any Channel)?) in
      var oldest: (any Channel)?
      if entries.count >= limit {
        guard let place = entries.firstIndex(where: { !$0.isTrusted }) else { return (false, nil) }
        oldest = entries.remove(at: place).channel
      }
      entries.append((channel, false))
      return (true, oldest)
    }
    oldest?.close(promise: nil)
    if isAdmitted {
      channel.closeFuture.whenComplete { [self] _ in
        entries.withLockedValue { entries in entries.removeAll { $0.channel === channel } }
      }
    }
    return isAdmitted
  }

  /// Records that a connection has sent an accepted request.
  func trust(_ channel: any Channel) {
    entries.withLockedValue { entries in
      for place in entries.indices where entries[place].channel === channel { entries[place].isTrusted = true }
    }
  }
}

/// Computes the answers on threads of its own: one for requests that change something, one for all others.
struct PageWorker: Sendable {
  private let reading = DispatchQueue(label: "buckia.serve.reading")
  private let writing = DispatchQueue(label: "buckia.serve.writing")
  private let respond: @Sendable (PageRequest) -> PageResponse

  init(_ respond: @escaping @Sendable (PageRequest) -> PageResponse) { self.respond = respond }

  /// Works out an answer, and hands it over on a thread of its own.
  func answer(_ request: PageRequest, _ finish: @escaping @Sendable (PageResponse) -> Void) {
    let queue = request.method == .post ? writing : reading
    queue.async { [respond] in finish(respond(request)) }
  }
}
