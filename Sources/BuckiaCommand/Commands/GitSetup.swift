import ArgumentParser
import Buckia

// Git's configuration for databases: the conversion to text, and the merge driver.
extension GitScope {
  /// The sections of the configuration.
  private static let sections = ["diff.buckia", "merge.buckia"]

  /// Writes the configuration.
  ///
  /// - Parameter options: Arguments of each merge.
  /// - Throws: `BuckiaError` with code `git`.
  func install(_ options: [String]) throws {
    let program = Self.command
    // Git replaces `%` and a letter with a file, unless the percent sign is doubled.
    let merge = (["git", "merge"] + options.map { $0.shellWord.replacing("%", with: "%%") }).joined(
      separator: " ")
    let settings = [
      ("diff.buckia.textconv", "\(program) git textconv"),
      ("merge.buckia.name", "SQLite databases, row by row"),
      // git quotes the path by itself, and the names of the three files need no quotes.
      ("merge.buckia.driver", "\(program) \(merge) %O %A %B %P"),
    ]
    for (name, value) in settings { try GitProgram.require(["config", "--\(rawValue)", name, value]) }
  }

  /// Removes the configuration.
  ///
  /// - Returns: True if there was any.
  func uninstall() throws -> Bool {
    var isFound = false
    for section in Self.sections {
      let pattern = "^\(section.replacing(".", with: "\\."))\\."
      let found = try GitProgram.run(["config", "--\(rawValue)", "--get-regexp", pattern])
      guard found.status == 0 else { continue }
      isFound = true
      try GitProgram.require(["config", "--\(rawValue)", "--remove-section", section])
    }
    return isFound
  }

  /// The shell command for this program: its name if `PATH` has it, which also finds a later version.
  private static var command: String {
    guard let own = ownPath else { return "buckia" }
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    let first = folders.map { "\($0)/buckia" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    return first.map({ resolved(Array($0.utf8CString)) == own }) == true ? "buckia" : own.shellWord
  }
}

/// For which repositories git is set up.
enum GitScope: String, EnumerableFlag {
  /// The repository of the current folder, and its worktrees.
  case local
  /// All repositories of the person.
  case global

  static func help(for value: GitScope) -> ArgumentHelp? {
    switch value {
    case .local: "For the repository of the current folder."
    case .global: "For all of your repositories."
    }
  }

  /// The file with the attributes for this clone only. Git would give everybody those of a tracked `.gitattributes`.
  ///
  /// - Throws: `BuckiaError` with code `git` outside of a repository.
  func attributesPath() throws -> String {
    switch self {
    case .local: return try GitProgram.require(["rev-parse", "--git-path", "info/attributes"])
    case .global:
      let set = try GitProgram.run(["config", "--global", "--type=path", "--get", "core.attributesFile"])
      if set.status == 0, !set.output.isEmpty { return set.output }
      // https://git-scm.com/docs/gitattributes
      let environment = ProcessInfo.processInfo.environment
      if let folder = environment["XDG_CONFIG_HOME"], !folder.isEmpty { return "\(folder)/git/attributes" }
      return "\(environment["HOME"] ?? "")/.config/git/attributes"
    }
  }
}

/// A file that says by patterns how git treats files. See <https://git-scm.com/docs/gitattributes>.
struct GitAttributes {
  /// The path of the file.
  let path: String
  private var lines: [[UInt8]] = []
  private let original: [[UInt8]]

  /// The attributes after the patterns of databases.
  private static let attributes = "diff=buckia merge=buckia"

  /// Reads a file, which need not exist.
  init(at path: String) throws {
    self.path = path
    if FileManager.default.fileExists(atPath: path) {
      let bytes = try Array(Data(contentsOf: URL(fileURLWithPath: path)))
      lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false).map(Array.init)
      if lines.last?.isEmpty == true { lines.removeLast() }
    }
    original = lines
  }

  /// True if anything has been added or removed.
  var isChanged: Bool { lines != original }

  /// The line for a pattern.
  static func line(for pattern: String) -> String { "\(quoted(pattern)) \(attributes)" }

  /// Adds a pattern, unless it is there.
  mutating func add(_ pattern: String) {
    let line = Array(Self.line(for: pattern).utf8)
    if !lines.contains(line) { lines.append(line) }
  }

  /// Removes all patterns of databases.
  mutating func removeAll() {
    let end = Array(" \(Self.attributes)".utf8)
    lines.removeAll { $0.suffix(end.count).elementsEqual(end) && $0.first != UInt8(ascii: "#") }
  }

  /// Writes the file, or deletes it if it has no lines.
  func write() throws {
    guard isChanged else { return }
    // If the file is a symbolic link, its target is written.
    let file = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    if lines.isEmpty { return try FileManager.default.removeItem(at: file) }
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(lines.flatMap { $0 + [0x0a] }).write(to: file, options: .atomic)
  }

  /// A pattern with spaces is quoted, with the escapes of C.
  private static func quoted(_ pattern: String) -> String {
    guard pattern.utf8.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: "\"") }) || pattern.hasPrefix("#") else {
      return pattern
    }
    let escaped = pattern.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\t", with: "\\t")
    return "\"\(escaped)\""
  }
}

/// The `git` of the system.
enum GitProgram {
  /// Runs git in the current folder, with our standard error.
  ///
  /// - Returns: Its exit status, and its standard output without the last line end.
  /// - Throws: `BuckiaError` with code `git` when git cannot be started.
  static func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let command = (["git"] + arguments).map(\.shellWord).joined(separator: " ")
    guard let stream = popen(command, "r") else {
      throw failure("it cannot be started: \(String(cString: strerror(errno)))")
    }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = fread(&piece, 1, piece.count, stream)
      guard count > 0 else { break }
      bytes += piece[..<count]
    }
    let status = pclose(stream)
    // The exit code is in the second byte, unless a signal has ended the shell.
    guard status >= 0, status & 0x7f == 0 else { throw failure("it has been ended by a signal") }
    guard status >> 8 != 127 else { throw failure("it is not installed, or not in PATH") }
    while bytes.last == 0x0a { bytes.removeLast() }
    return (status >> 8, String(decoding: bytes, as: UTF8.self))
  }

  /// Runs git and makes sure that it succeeds.
  ///
  /// - Throws: `BuckiaError` with code `git`.
  @discardableResult
  static func require(_ arguments: [String]) throws -> String {
    let outcome = try run(arguments)
    guard outcome.status == 0 else {
      throw failure("git \(arguments.joined(separator: " ")) ended with \(outcome.status)")
    }
    return outcome.output
  }

  private static func failure(_ reason: String) -> BuckiaError { BuckiaError(.git, "git: \(reason)") }
}

extension BuckiaErrorCode {
  /// The program git failed.
  static let git = BuckiaErrorCode(rawValue: "git")
}

extension String {
  /// The text as one word of a command that a shell runs.
  fileprivate var shellWord: String {
    let parts = split(separator: "'", omittingEmptySubsequences: false)
    return "'" + parts.joined(separator: #"'\''"#) + "'"
  }
}

// This program as a file.
extension GitScope {
  /// Its path without symbolic links; nil if unknown.
  private static var ownPath: String? {
    #if canImport(Darwin)
      var size: UInt32 = 0
      _NSGetExecutablePath(nil, &size)
      var buffer = [CChar](repeating: 0, count: Int(size) + 1)
      guard _NSGetExecutablePath(&buffer, &size) == 0 else { return nil }
      return resolved(buffer)
    #else
      return resolved(Array("/proc/self/exe".utf8CString))
    #endif
  }

  private static func resolved(_ path: [CChar]) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }
}
