import NIOCore
import NIOPosix

/// A port of the loopback interface whose listener accepts no connections, and whose queue is full: a client that
/// connects gets no answer at all.
public final class DeafServer: Sendable {
  private let channels: [any Channel]
  /// The address.
  public let address: String

  /// The greatest number of connections made to fill the queue.
  private static let limit = 64

  /// Listens, and fills the queue.
  public init() async throws {
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 1)
      .serverChannelOption(.autoRead, value: false)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = listener.localAddress?.port ?? 0
    var channels: [any Channel] = [listener]
    var isFull = false
    while !isFull, channels.count < Self.limit {
      do {
        channels.append(
          try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.milliseconds(500)).connect(host: "127.0.0.1", port: port).get())
      } catch {
        // The next client would wait as this one did.
        isFull = true
      }
    }
    self.channels = channels
    address = "http://127.0.0.1:\(port)"
    guard isFull else {
      throw TestServer.StartFailure(description: "this system takes connections without an end for a program")
    }
  }

  deinit { for channel in channels { channel.close(promise: nil) } }
}
