import Foundation
import Testing

/// A git repository of a test's own, in which the built `buckia` is the driver for databases, and nothing of the person's
/// configuration counts.
struct GitRepository {
  let bench: Workbench
  /// The folder of the repository, inside that of the bench.
  let folder: String

  /// True if there is git to test with.
  static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/git") || path != nil
  static let requirement: Comment = "git is not installed; on Debian: apt-get install git"

  private static var path: String? {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return folders.map { "\($0)/git" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Makes a repository, set up by `buckia git install`.
  init(_ folder: String = "my repository") throws {
    bench = try Workbench()
    self.folder = folder
    try FileManager.default.createDirectory(atPath: bench.path(folder), withIntermediateDirectories: true)
    try git("init -q -b main")
    try shell("\"$BUCKIA\" git install --quiet")
  }

  /// What keeps the person's own settings out, and makes commits the same each time.
  private var environment: [String: String] {
    [
      "HOME": bench.path("."), "XDG_CONFIG_HOME": bench.path(".config"), "GIT_CONFIG_NOSYSTEM": "1",
      "GIT_CONFIG_GLOBAL": bench.path(".gitconfig"), "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
      "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_EDITOR": "true", "LC_ALL": "C",
      "GIT_CEILING_DIRECTORIES": bench.path("."), "TMPDIR": bench.path("."),
    ]
  }

  /// Runs a line of the shell's in the repository.
  @discardableResult
  func shell(_ line: String, in subfolder: String = "", status: Int32 = 0) throws -> Workbench.Outcome {
    let settings = environment.map { "export \($0)='\($1)'" }.joined(separator: "; ")
    let place = subfolder.isEmpty ? folder : "\(folder)/\(subfolder)"
    let outcome = try bench.shell(
      "unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE; \(settings); cd '\(bench.path(place))' && \(line)")
    #expect(outcome.status == status, "\(line): \(outcome.output)\(outcome.diagnostics)")
    return outcome
  }

  @discardableResult
  func git(_ line: String, in subfolder: String = "", status: Int32 = 0) throws -> Workbench.Outcome {
    try shell("git \(line)", in: subfolder, status: status)
  }

  /// Runs SQL on a database of the repository.
  @discardableResult
  func sql(_ database: String, _ sql: String) throws -> [String] { try bench.sql("\(folder)/\(database)", sql) }

  /// Commits everything there is.
  func commit(_ message: String = "change") throws { try shell("git add -A && git commit -qm '\(message)'") }

  /// Makes two branches out of the present state, `main` and `side`, with a change of each.
  func diverge(main: () throws -> Void, side: () throws -> Void) throws {
    try git("checkout -qb side")
    try side()
    try commit("side")
    try git("checkout -q main")
    try main()
    try commit("main")
  }

  /// The paths that git has left unmerged.
  func unmerged() throws -> [String] {
    try git("-c core.quotePath=false diff --name-only --diff-filter=U").output.split(separator: "\n").map(String.init)
  }
}
