#if os(Linux)
  import BuckiaBytes
  import NIOPosix

  /// Keeps tokens with the secret service of a Linux desktop (GNOME Keyring, KWallet), through `secret-tool`, which is a part of libsecret:
  /// <https://gnome.pages.gitlab.gnome.org/libsecret/>. Secrets go through pipes, never through arguments, which other users can see.
  public struct SecretServiceTokenStore: TokenStore {
    private let service: String
    private let tool: SecretTool

    /// Finds the program and checks that the service answers.
    ///
    /// - Parameters:
    ///   - service: What the service calls the app, such as `com.example.notes`.
    ///   - searchPath: Where programs are, as the variable `PATH` has it.
    /// - Throws: `StorageError` with `storeUnavailable` and the reason, when there is no such service here.
    public init(service: String, searchPath: String) async throws {
      self.service = service
      tool = try SecretTool(searchPath: searchPath)
      _ = try await Self.lookup(tool, service, "probe")
    }

    /// Reads the token of a context; nil if there is none.
    public func token(for context: TokenContext) async throws -> AccessToken? {
      guard let bytes = try await Self.lookup(tool, service, context.rawValue) else { return nil }
      return try AccessToken.stored(bytes, in: "the secret service")
    }

    private static func lookup(_ tool: SecretTool, _ service: String, _ context: String) async throws -> [UInt8]? {
      let result = try await run(tool, ["lookup"] + attributes(service, context), input: [])
      if result.status == 0 { return result.output.isEmpty ? nil : result.output }
      // It says nothing where there is just no such secret.
      guard result.message.isEmpty else { throw failure(result) }
      return nil
    }

    /// Keeps a token, in place of the one that the context had.
    public func save(_ token: AccessToken, for context: TokenContext) async throws {
      let result = try await Self.run(
        tool, ["store", "--label=\(service) (\(context))"] + Self.attributes(service, context.rawValue),
        input: token.document.bytes())
      guard result.status == 0 else { throw Self.failure(result) }
    }

    /// Removes the token of a context, if it is there.
    public func remove(_ context: TokenContext) async throws {
      let result = try await Self.run(tool, ["clear"] + Self.attributes(service, context.rawValue), input: [])
      guard result.status == 0 || result.message.isEmpty else { throw Self.failure(result) }
    }

    private static func attributes(_ service: String, _ context: String) -> [String] {
      ["service", service, "context", context]
    }

    /// The program may wait for somebody to unlock their keyring, so it does not hold a thread of Swift's up.
    private static func run(_ tool: SecretTool, _ arguments: [String], input: [UInt8]) async throws -> SecretTool.Result
    {
      try await NIOThreadPool.singleton.runIfActive { try tool.run(arguments, input: input) }
    }

    private static func failure(_ result: SecretTool.Result) -> StorageError {
      StorageError(.storeUnavailable, "the desktop's secret service does not answer: \(result.message)")
    }
  }
#endif
