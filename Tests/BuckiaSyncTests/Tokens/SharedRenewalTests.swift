import NIOConcurrencyHelpers
import TestSupport
import Testing

@testable import BuckiaSync

@Suite("Programs that share a file of tokens")
struct SharedRenewalTests {
  /// A slow server that accepts each refresh token once.
  private final class Server: TokenSource {
    private let taken = NIOLockedValueBox<[String]>([])
    private let time: TestClock

    init(_ time: TestClock) { self.time = time }

    var renewals: Int { taken.withLockedValue { $0.count } }

    func token(replacing old: AccessToken?) async throws -> AccessToken {
      let refresh = old?.refreshToken?.value ?? ""
      let number = taken.withLockedValue { taken -> Int? in
        guard !taken.contains(refresh) else { return nil }
        taken.append(refresh)
        return taken.count
      }
      try await Task.sleep(for: .milliseconds(50))
      guard let number else { throw StorageError(.expired, "the refresh token was used before") }
      return AccessToken(
        SecretText("new \(number)"), issued: time.now, expires: time.now + 3_600_000,
        refreshToken: SecretText("refresh \(number)"))
    }
  }

  @Test(
    "If several programs renew a token at once, one does, and the others get its token", arguments: [false, true])
  func oneRenewal(isSystemStore: Bool) async throws {
    let folder = try TemporaryFolder()
    let time = TestClock()
    let server = Server(time)
    let old = AccessToken(
      SecretText("old"), issued: time.now - 7_200_000, expires: time.now - 3_600_000,
      refreshToken: SecretText("refresh 0"))
    try await FileTokenStore(path: folder.file("tokens")).save(old, for: .storage)
    let values = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<4 {
        group.addTask {
          // As in another program: a separate manager and store.
          let path = folder.file("tokens")
          // Without a desktop, the system's store falls back to the file.
          let store: any TokenStore =
            isSystemStore
            ? await SystemTokenStore(service: "example", file: path, environment: [:]) : FileTokenStore(path: path)
          let manager = TokenManager(store: store, clock: time.clock)
          await manager.setSources([server], for: .storage)
          return try await manager.token(for: .storage).value.value
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(values == ["new 1", "new 1", "new 1", "new 1"])
    #expect(server.renewals == 1)
  }
}
