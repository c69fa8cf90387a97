import Foundation
import Testing

/// A git repository for a test. The built `buckia` is its merge driver for databases, and the person's configuration is
/// ignored.
struct GitRepository {
  let bench: Workbench
  /// The folder of the repository, inside the bench.
  let folder: String

  /// True if git is installed.
  static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/git") || path != nil
  static let requirement: Comment = "git is not installed; on Debian: apt-get install git"

  private static var path: String? {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return folders.map { "\($0)/git" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Creates a repository and sets it up with `buckia git install`.
  init(_ folder: String = "my repository") throws {
    bench = try Workbench()
    self.folder = folder
    try FileManager.default.createDirectory(atPath: bench.path(folder), withIntermediateDirectories: true)
    try git("init -q -b main")
    try shell("\"$BUCKIA\" git install --quiet")
  }

  /// Variables that keep the person's settings out and make commits reproducible.
  private var environment: [String: String] {
    [
      "HOME": bench.path("."), "XDG_CONFIG_HOME": bench.path(".config"), "GIT_CONFIG_NOSYSTEM": "1",
      "GIT_CONFIG_GLOBAL": bench.path(".gitconfig"), "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
      "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_EDITOR": "true", "LC_ALL": "C",
      "GIT_CEILING_DIRECTORIES": bench.path("."), "TMPDIR": bench.path("."),
    ]
  }

  /// Runs a shell command in the repository.
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

  /// Commits all changes.
  func commit(_ message: String = "change") throws { try shell("git add -A && git commit -qm '\(message)'") }

  /// Creates two branches from the current state, `main` and `side`, with one change each.
  func diverge(main: () throws -> Void, side: () throws -> Void) throws {
    try git("checkout -qb side")
    try side()
    try commit("side")
    try git("checkout -q main")
    try main()
    try commit("main")
  }

  /// The paths that git reports as unmerged.
  func unmerged() throws -> [String] {
    try git("-c core.quotePath=false diff --name-only --diff-filter=U").output.split(separator: "\n").map(String.init)
  }
}
