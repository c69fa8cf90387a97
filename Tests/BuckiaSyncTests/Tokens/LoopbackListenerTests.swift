import BuckiaSync
import BuckiaStorage
import NIOCore
import NIOPosix
import Testing

@testable import BuckiaSync

@Suite("The port to which the browser returns")
struct LoopbackListenerTests {
  private func status(_ address: String, _ method: String = "GET", host: String? = nil) async throws -> Int {
    var request = HTTPTransportRequest(method, try HTTPAddress(address))
    request.headers["Host"] = host
    let response = try await SignInServers.transport.send(request)
    _ = try await response.body.bytes(upTo: 1 << 16)
    return response.status
  }

  private func number(of listener: LoopbackListener) -> Int? {
    listener.address.firstMatch(of: /:(\d+)\//).flatMap { Int($0.1) }
  }

  @Test("Only the answer is accepted; other requests in between change nothing")
  func foreignRequests() async throws {
    let listener = try await LoopbackListener(port: 0)
    let address = listener.address
    #expect(address.wholeMatch(of: /http:\/\/127\.0\.0\.1:\d+\/signed-in/) != nil)
    // Until the expected answer is known, no request is accepted.
    #expect(try await status("\(address)?state=good") == 400)
    listener.accept { $0.hasSuffix("?state=good") }
    let origin = String(address.dropLast("/signed-in".count))
    #expect(try await status("\(origin)/favicon.ico") == 404)
    #expect(try await status("\(origin)/signed-in2?state=good") == 404)
    #expect(try await status("\(address)?state=bad") == 400)
    #expect(try await status(address) == 400)
    #expect(try await status("\(address)?state=good", "POST") == 400)
    // A web site whose host name was pointed at this computer.
    #expect(try await status("\(address)?state=good", host: "evil.example") == 400)
    #expect(try await status("\(address)?state=good") == 200)
    #expect(try await listener.target(within: 60) == "/signed-in?state=good")
    await listener.close()
    let port = try #require(number(of: listener))
    await #expect(throws: (any Error).self) {
      try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup).connect(host: "127.0.0.1", port: port)
        .get()
    }
  }

  @Test("A silent connection does not block others")
  func idleConnections() async throws {
    let listener = try await LoopbackListener(port: 0)
    listener.accept { _ in true }
    let address = listener.address
    let port = try #require(number(of: listener))
    // Browsers open some in advance.
    var idle: [any Channel] = []
    for _ in 0..<5 {
      idle.append(
        try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup).connect(host: "127.0.0.1", port: port)
          .get())
    }
    let garbage = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: "127.0.0.1", port: port).get()
    try await garbage.writeAndFlush(ByteBuffer(string: "\u{0}\u{1} no HTTP\r\n\r\n"))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { try await status(address) } }
      for try await status in group { #expect(status == 200) }
    }
    try await garbage.closeFuture.get()
    for channel in idle { try await channel.close() }
    await listener.close()
  }

  @Test("A port in use is an error that names it")
  func takenPort() async throws {
    let listener = try await LoopbackListener(port: 0)
    let port = try #require(number(of: listener))
    let error = await #expect(throws: StorageError.self) { try await LoopbackListener(port: port) }
    #expect(error?.code == .noListener)
    #expect(error?.message.contains("(\(port))") == true)
    for number in [-1, 65_536, Int.max] {
      #expect(await code { _ = try await LoopbackListener(port: number) } == .invalidSetting)
    }
    await listener.close()
    await listener.close()
  }

  @Test("Cancelling ends the waiting, and frees the port")
  func cancellation() async throws {
    let server = StubProvider()
    let client = try server.client()
    let waiting = Task { try await client.signIn { _ in withUnsafeCurrentTask { $0?.cancel() } } }
    await #expect(throws: CancellationError.self) { try await waiting.value }
  }

  @Test("A person who does not return in time is an error")
  func timeout() async throws {
    let client = try StubProvider().client()
    #expect(await code { _ = try await client.signIn(within: 1) { _ in } } == .signInExpired)
  }

  @Test("An error that the app throws when it opens the address is rethrown")
  func failedOpening() async throws {
    struct NoBrowser: Error {}
    let client = try StubProvider().client()
    await #expect(throws: NoBrowser.self) { try await client.signIn { _ in throw NoBrowser() } }
  }
}
