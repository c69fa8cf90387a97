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

#if os(Linux)
  import BuckiaBytes

  /// Runs `secret-tool`.
  struct SecretTool: Sendable {
    /// What it has said.
    struct Result: Sendable {
      let status: Int32
      let output: [UInt8]
      /// Its complaint, fit to be shown.
      let message: String
    }

    /// Where it is.
    private let path: String

    /// How much it may say, in bytes.
    private static let outputLimit = AccessToken.byteLimit

    /// - Throws: `StorageError` with `storeUnavailable` when there is no such program.
    init(searchPath: String) throws(StorageError) {
      let candidates = searchPath.split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/secret-tool" }
      guard let path = candidates.first(where: { access($0, X_OK) == 0 }) else {
        throw StorageError(
          .storeUnavailable,
          "there is no secret-tool here, which reaches the desktop's secret service (package libsecret-tools)")
      }
      self.path = path
    }

    /// Runs it to its end.
    ///
    /// - Parameter input: What it reads.
    /// - Throws: `StorageError` with `storeUnavailable`.
    func run(_ arguments: [String], input: [UInt8]) throws(StorageError) -> Result {
      let standardInput = try ProcessStream()
      let output = try ProcessStream()
      let message = try ProcessStream()
      let process = try start(arguments, standardInput, output, message)
      for stream in [standardInput, output, message] { stream.closeTheirs() }
      let hasWritten = standardInput.write(input)
      standardInput.closeOurs()
      // Its complaints are short, and fit the stream's buffer while the output is read. Closed, a stream ends a program that would say more,
      // instead of letting it wait for a reader.
      let bytes = output.read(upTo: Self.outputLimit)
      output.closeOurs()
      let complaint = message.read(upTo: 4096) ?? []
      message.closeOurs()
      var status: Int32 = 0
      while waitpid(process, &status, 0) < 0 {
        if errno != EINTR { throw Self.failure(errno) }
      }
      guard let bytes, hasWritten || status != 0 else {
        throw StorageError(.storeUnavailable, "secret-tool does not do what it should; tokens cannot be kept with it")
      }
      // The low bits say by which signal it has ended, the next eight with which status.
      let code = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F)
      return Result(status: code, output: bytes, message: Self.line(complaint))
    }

    private func start(
      _ arguments: [String], _ input: ProcessStream, _ output: ProcessStream, _ message: ProcessStream
    ) throws(StorageError) -> pid_t {
      var actions = posix_spawn_file_actions_t()
      posix_spawn_file_actions_init(&actions)
      defer { posix_spawn_file_actions_destroy(&actions) }
      posix_spawn_file_actions_adddup2(&actions, input.theirs, STDIN_FILENO)
      posix_spawn_file_actions_adddup2(&actions, output.theirs, STDOUT_FILENO)
      posix_spawn_file_actions_adddup2(&actions, message.theirs, STDERR_FILENO)
      var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
      defer { for word in words { free(word) } }
      var process: pid_t = 0
      // Sound: the words end with nil and are freed after the call, which copies them.
      let number = posix_spawn(&process, path, &actions, nil, &words, environ)
      guard number == 0 else { throw Self.failure(number) }
      return process
    }

    fileprivate static func failure(_ number: Int32) -> StorageError {
      StorageError(.storeUnavailable, "secret-tool cannot be run: \(String(cString: strerror(number)))")
    }

    private static func line(_ complaint: [UInt8]) -> String {
      let lines = complaint.split { $0 == 0x0A || $0 == 0x0D }
      return lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "; ").shown
    }
  }

  /// Bytes to or from a program, through a pair of sockets: unlike pipes, these are closed in other programs that are
  /// started meanwhile, and writing to one without a reader sends no signal.
  private final class ProcessStream {
    private(set) var ours: Int32
    private(set) var theirs: Int32

    #if canImport(Glibc)
      private static let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    #else
      private static let kind = SOCK_STREAM | SOCK_CLOEXEC
    #endif

    init() throws(StorageError) {
      var ends: [Int32] = [-1, -1]
      guard socketpair(AF_UNIX, Self.kind, 0, &ends) == 0 else { throw SecretTool.failure(errno) }
      (ours, theirs) = (ends[0], ends[1])
    }

    deinit {
      closeOurs()
      closeTheirs()
    }

    func closeOurs() {
      if ours >= 0 { close(ours) }
      ours = -1
    }

    func closeTheirs() {
      if theirs >= 0 { close(theirs) }
      theirs = -1
    }

    /// True if all bytes were taken.
    func write(_ bytes: [UInt8]) -> Bool {
      var rest = bytes[...]
      while !rest.isEmpty {
        // Sound: the buffer outlives the call, and its count goes along.
        let count = rest.withUnsafeBytes { send(ours, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }

    /// All bytes; nil if there are more than the limit, or they cannot be read.
    func read(upTo limit: Int) -> [UInt8]? {
      var bytes: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 4096)
      while true {
        // Sound: the system writes no more than the buffer holds.
        let count = chunk.withUnsafeMutableBytes { recv(ours, $0.baseAddress, $0.count, 0) }
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { return nil }
        if count == 0 { return bytes }
        guard bytes.count + count <= limit else { return nil }
        bytes += chunk[..<count]
      }
    }
  }
#endif
