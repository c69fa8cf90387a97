#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What git's configuration says of databases: how they become text, and how they are merged.
enum GitDriver {
  /// The sections of the configuration.
  private static let sections = ["diff.buckia", "merge.buckia"]

  /// Writes the configuration.
  ///
  /// - Parameter options: Arguments of each merge.
  /// - Throws: `BuckiaError` with code `git`.
  static func install(_ scope: GitScope, _ options: [String]) throws {
    let program = command
    // To git a percent sign stands for a file, unless it is doubled.
    let merge = (["git", "merge"] + options.map { ShellWord($0).description.replacing("%", with: "%%") }).joined(
      separator: " ")
    let settings = [
      ("diff.buckia.textconv", "\(program) git textconv"),
      ("merge.buckia.name", "SQLite databases, row by row"),
      // git quotes the path by itself, and the names of the three files need no quotes.
      ("merge.buckia.driver", "\(program) \(merge) %O %A %B %P"),
    ]
    for (name, value) in settings { try GitProgram.require(["config", "--\(scope.rawValue)", name, value]) }
  }

  /// Removes the configuration.
  ///
  /// - Returns: Whether there was any.
  static func uninstall(_ scope: GitScope) throws -> Bool {
    var isFound = false
    for section in sections {
      let pattern = "^\(section.replacing(".", with: "\\."))\\."
      let found = try GitProgram.run(["config", "--\(scope.rawValue)", "--get-regexp", pattern])
      guard found.status == 0 else { continue }
      isFound = true
      try GitProgram.require(["config", "--\(scope.rawValue)", "--remove-section", section])
    }
    return isFound
  }

  /// How a shell starts this program: by its name where it is found by that, so that a newer version takes its place.
  private static var command: String {
    guard let own = OwnProgram.path else { return "buckia" }
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    let first = folders.map { "\($0)/buckia" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    return first.map(OwnProgram.isFound) == true ? "buckia" : ShellWord(own).description
  }
}
