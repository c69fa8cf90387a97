import BuckiaBytes
import Foundation
import TestSupport
import Testing

@testable import BuckiaSync

@Suite("Storing tokens")
struct TokenStoreTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file("tokens.json") }

  init() throws { folder = try TemporaryFolder() }

  private let token = AccessToken(
    SecretText("v\u{e4}lue\n\""), issued: 1, expires: 2, refreshToken: SecretText("refresh"), scopes: ["a", "b"])

  private func permissions(_ file: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
  }

  @Test("A file returns the stored tokens for each context, also to the next program")
  func roundTrip() async throws {
    let store = FileTokenStore(path: path)
    #expect(try await store.token(for: .storage) == nil)
    try await store.save(token, for: .storage)
    try await store.save(AccessToken(SecretText("x")), for: .inbound(of: "anna"))
    let next = FileTokenStore(path: path)
    #expect(try await next.token(for: .storage) == token)
    #expect(try await next.token(for: .inbound(of: "anna")) == AccessToken(SecretText("x")))
    #expect(try await next.token(for: .inbound(of: "ben")) == nil)
    try await next.remove(.storage)
    try await next.remove(.inbound(of: "ben"))
    #expect(try await store.token(for: .storage) == nil)
    #expect(try await store.token(for: .inbound(of: "anna")) != nil)
  }

  @Test("Only the owner can read the file and those beside it")
  func isPrivate() async throws {
    try await FileTokenStore(path: path).save(token, for: .storage)
    for name in try folder.names(in: ".") { #expect(try permissions(folder.file(name)) == 0o600, "\(name)") }
    #expect(try folder.names(in: ".") == ["tokens.json", "tokens.json.lock"])
  }

  @Test(
    "A file that others can read or write is neither used nor overwritten", arguments: [0o640, 0o604, 0o620, 0o666])
  func open(_ mode: Int) async throws {
    let store = FileTokenStore(path: path)
    try await store.save(token, for: .storage)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    let before = try fileBytes(path)
    #expect(await code { _ = try await store.token(for: .storage) } == .notPrivate)
    #expect(await code { try await store.save(token, for: .storage) } == .notPrivate)
    #expect(try fileBytes(path) == before)
  }

  @Test("A link is not followed")
  func link() async throws {
    try await FileTokenStore(path: path).save(token, for: .storage)
    try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: path)
    await #expect(throws: StorageError.self) {
      try await FileTokenStore(path: folder.file("link")).token(for: .storage)
    }
  }

  @Test(
    "A file without tokens is left alone, and the error has advice",
    arguments: [
      "", "{", "[]", "{}", #"{"version":2,"tokens":{}}"#, #"{"version":1}"#, #"{"version":1,"tokens":[]}"#,
      #"{"version":1,"tokens":{"storage":7}}"#, #"{"version":1,"tokens":{"storage":{}}}"#,
      #"{"version":1,"tokens":{"storage":{"value":"x","expires":"soon"}}}"#,
      #"{"version":1,"tokens":{"storage":{"value":"x"},"storage":{"value":"y"}}}"#,
    ])
  func damaged(_ text: String) async throws {
    try folder.write(Array(text.utf8), to: "tokens.json")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let error = await #expect(throws: StorageError.self) { try await FileTokenStore(path: path).token(for: .storage) }
    #expect(error?.code == .invalidStore)
    #expect(error?.message.hasPrefix(path) == true)
    #expect(try fileBytes(path) == Array(text.utf8))
  }

  @Test("Unknown members of a later version are ignored")
  func additions() async throws {
    try folder.write(Array(#"{"version":1,"tokens":{"storage":{"value":"x","new":[1]}}}"#.utf8), to: "tokens.json")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    #expect(try await FileTokenStore(path: path).token(for: .storage) == AccessToken(SecretText("x")))
  }

  @Test("A program waits until another has changed the file, and keeps what that wrote")
  func otherProgram() async throws {
    let path = path
    let (held, holding) = AsyncStream.makeStream(of: Void.self)
    Thread.detachNewThread {
      do {
        let lock = try PosixFile(updating: "\(path).lock")
        #expect(lock.lock())
        holding.finish()
        // Enough time for a program that does not wait.
        Thread.sleep(forTimeInterval: 0.3)
        let output = try AtomicFileOutput(at: path, replacing: true, isPrivate: true)
        try output.write(Array(#"{"version":1,"tokens":{"storage":{"value":"theirs"}}}"#.utf8))
        try output.publish()
        withExtendedLifetime(lock) {}
      } catch {
        holding.finish()
        Issue.record(error)
      }
    }
    for await _ in held {}
    let store = FileTokenStore(path: path)
    try await store.save(AccessToken(SecretText("ours")), for: .inbound(of: "anna"))
    #expect(try await store.token(for: .storage)?.value.value == "theirs")
    #expect(try await store.token(for: .inbound(of: "anna"))?.value.value == "ours")
  }

  @Test("Programs that store tokens at the same time lose none")
  func concurrency() async throws {
    let path = path
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<24 {
        group.addTask {
          try await FileTokenStore(path: path).save(
            AccessToken(SecretText("\(number)")), for: .inbound(of: "\(number)"))
        }
      }
      try await group.waitForAll()
    }
    for number in 0..<24 {
      #expect(try await FileTokenStore(path: path).token(for: .inbound(of: "\(number)"))?.value.value == "\(number)")
    }
  }

  #if os(Linux)
    /// A stand-in for `secret-tool`, which stores a secret in a file named by its last argument, and records its
    /// arguments.
    private func makeTool(_ body: String? = nil) throws {
      let script = """
        #!/bin/sh
        cd '\(folder.path)'
        echo "$*" >> arguments
        for last; do :; done
        case "$1" in
          store) cat > "secret $last" ;;
          lookup) [ -e "secret $last" ] || exit 1; cat "secret $last" ;;
          clear) rm -f "secret $last" ;;
        esac
        """
      // Another process writes the script: a program started meanwhile inherits files that this process has open for
      // writing, and the system runs no file that is open for writing.
      let writer = try ProgramRun(
        "/bin/sh",
        ["-c", #"printf '%s' "$1" > "$2" && chmod 755 "$2""#, "sh", body ?? script, folder.file("secret-tool")])
      #expect(writer.hasSucceeded)
    }

    private var environment: [String: String] {
      ["PATH": "\(folder.path):/usr/bin:/bin", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/none"]
    }

    @Test("The desktop's secret service stores tokens, which never appear in arguments")
    func secretService() async throws {
      try makeTool()
      let store = await SystemTokenStore(service: "test", file: path, environment: environment)
      #expect(store.fallbackReason == nil)
      #expect(try await store.token(for: .storage) == nil)
      try await store.save(token, for: .storage)
      #expect(try await store.token(for: .storage) == token)
      try await store.remove(.storage)
      #expect(try await store.token(for: .storage) == nil)
      let arguments = String(decoding: try fileBytes(folder.file("arguments")), as: UTF8.self)
      #expect(arguments.contains("lookup service test context storage"))
      #expect(!arguments.contains("lue") && !arguments.contains("refresh"))
      #expect(!folder.has("tokens.json"))
    }

    @Test(
      "Without a secret service, a file is used, and the reason is reported",
      arguments: [
        (
          "#!/bin/sh\necho 'Cannot autolaunch D-Bus\u{1b}[31m' >&2\nexit 1\n",
          "does not answer: Cannot autolaunch D-Bus [31m"
        ),
        ("#!/bin/sh\nyes\n", "does not do what it should"), ("#!/bin/sh\nkill -9 $$\n", ""),
      ])
    func fallback(_ script: String, _ reason: String) async throws {
      try makeTool(script)
      let store = await SystemTokenStore(service: "test", file: path, environment: environment)
      if reason.isEmpty {
        // A program that just dies looks like one that finds nothing.
        #expect(await code { try await store.save(token, for: .storage) } == .storeUnavailable)
        return
      }
      #expect(store.fallbackReason?.contains(reason) == true, "\(store.fallbackReason ?? "")")
      try await store.save(token, for: .storage)
      #expect(try await FileTokenStore(path: path).token(for: .storage) == token)
    }

    @Test("Without the program, or without a desktop, a file is used")
    func noTool() async throws {
      var store = await SystemTokenStore(
        service: "test", file: path, environment: ["PATH": folder.path, "DBUS_SESSION_BUS_ADDRESS": "x"])
      #expect(store.fallbackReason?.contains("package libsecret-tools") == true)
      try makeTool()
      store = await SystemTokenStore(service: "test", file: path, environment: ["PATH": folder.path])
      #expect(store.fallbackReason?.contains("no desktop session") == true)
    }
  #endif
}
