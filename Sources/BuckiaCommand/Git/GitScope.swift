import ArgumentParser

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

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

  /// The file with the attributes, which nobody else gets: what a repository tracks in `.gitattributes` everybody has.
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
