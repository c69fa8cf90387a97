import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A port of the loopback interface that forwards bytes to a server and back, and treats some connections as bad
/// networks do.
public final class Relay: Sendable {
  /// What happens to one connection.
  public enum Behaviour: Sendable {
    /// Nothing is changed.
    case pass
    /// Each piece of data is delayed by this number of milliseconds.
    case delay(Int64)
    /// The connection is closed after this number of bytes from the client.
    case cutRequest(after: Int)
    /// The connection is closed after this number of bytes from the server.
    case cutAnswer(after: Int)
  }

  private let channel: any Channel
  /// The address.
  public let address: String

  /// Listens.
  ///
  /// - Parameters:
  ///   - port: The server's port.
  ///   - behaviour: Decides what happens to a connection, given the number of earlier ones.
  public init(to port: Int, _ behaviour: @escaping @Sendable (Int) -> Behaviour) async throws {
    let count = NIOLockedValueBox(0)
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 256)
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { client in
        let number = count.withLockedValue { count in
          defer { count += 1 }
          return count
        }
        let behaviour = behaviour(number)
        return ClientBootstrap(group: client.eventLoop).channelOption(.autoRead, value: false)
          .connect(host: "127.0.0.1", port: port)
          .flatMap { server in
            let (toServer, toClient): (Pipe, Pipe) =
              switch behaviour {
              case .pass: (Pipe(to: server), Pipe(to: client))
              case .delay(let time):
                (Pipe(to: server, after: .milliseconds(time)), Pipe(to: client, after: .milliseconds(time)))
              case .cutRequest(let bytes): (Pipe(to: server, cutAfter: bytes), Pipe(to: client))
              case .cutAnswer(let bytes): (Pipe(to: server), Pipe(to: client, cutAfter: bytes))
              }
            return client.pipeline.addHandler(toServer).and(server.pipeline.addHandler(toClient)).flatMap { _ in
              client.setOption(.autoRead, value: true).and(server.setOption(.autoRead, value: true)).map { _ in }
            }
          }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    address = "http://127.0.0.1:\(channel.localAddress?.port ?? 0)"
  }

  deinit { channel.close(promise: nil) }

  /// Forwards the data from one side.
  private final class Pipe: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    private let other: any Channel
    private let delay: TimeAmount
    private let left: NIOLockedValueBox<Int>

    init(to other: any Channel, after delay: TimeAmount = .zero, cutAfter bytes: Int = .max) {
      self.other = other
      self.delay = delay
      left = NIOLockedValueBox(bytes)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let buffer = unwrapInboundIn(data)
      let count = left.withLockedValue { left in
        defer { left -= min(left, buffer.readableBytes) }
        return min(left, buffer.readableBytes)
      }
      let (other, channel) = (other, context.channel)
      let isCut = count < buffer.readableBytes
      context.eventLoop.scheduleTask(in: delay) {
        if let part = buffer.getSlice(at: buffer.readerIndex, length: count) { other.writeAndFlush(part, promise: nil) }
        guard isCut else { return }
        other.close(promise: nil)
        channel.close(promise: nil)
      }
    }

    func channelInactive(context: ChannelHandlerContext) {
      let other = other
      context.eventLoop.scheduleTask(in: delay) { other.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
