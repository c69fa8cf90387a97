import ArgumentParser
import Buckia

/// `buckia git`: databases in git repositories.
struct GitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "git",
    abstract: "Lets git show and merge databases row by row.",
    discussion: """
      install tells git what to call for databases: textconv, so that git diff and git log -p show rows, and merge, for git \
      merge, rebase, cherry-pick and stash. Databases with a write-ahead log are in git without it: close the programs that use \
      them before you commit.

      Example:
        buckia git install
        git merge other-branch
      """,
    subcommands: [GitInstallCommand.self, GitUninstallCommand.self, GitTextconvCommand.self, GitMergeCommand.self])
}

/// `buckia git install`
struct GitInstallCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "install",
    abstract: "Sets git up for databases.",
    discussion: """
      No tracked file is changed: the patterns are written into .git/info/attributes, or with --global into your own \
      file of attributes. For all who clone the repository, add the lines to .gitattributes; where this command has not been \
      run, git treats the files as binary.

      Example:
        buckia git install '*.sqlite' '*.gpkg'
      """)

  @Argument(help: "The files that are databases, as git's patterns.")
  var patterns: [String] = ["*.sqlite", "*.sqlite3"]

  @Flag var scope = GitScope.local

  @OptionGroup var merging: MergingOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    for pattern in patterns where pattern.isEmpty || pattern.contains(where: \.isNewline) || pattern.hasPrefix("!") {
      throw ValidationError("'\(pattern.escaped(limit: 40))' is no pattern of files.")
    }
  }

  func perform(on console: Console) throws -> ExitStatus {
    var attributes = try GitAttributes(at: scope.attributesPath())
    for pattern in patterns { attributes.add(pattern) }
    try scope.install(merging.arguments + output.extensionArguments)
    try attributes.write()
    try console.document([
      "version": 1, "scope": .string(scope.rawValue), "attributes": .string(attributes.path),
      "patterns": .strings(patterns), "changed": .bool(attributes.isChanged),
    ])
    let names = patterns.map(\.escaped).joined(separator: ", ")
    let state = attributes.isChanged ? "written into" : "in"
    try console.say(
      console.style.wrapped(
        "git shows and merges \(names) row by row: \(state) \(attributes.path.escaped).", hanging: 2))
    return .done
  }
}

/// `buckia git uninstall`
struct GitUninstallCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "uninstall",
    abstract: "Takes away what install has written.",
    discussion: """
      Example:
        buckia git uninstall --global
      """)

  @Flag var scope = GitScope.local

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    var attributes = try GitAttributes(at: scope.attributesPath())
    attributes.removeAll()
    try attributes.write()
    let wasConfigured = try scope.uninstall()
    let isChanged = attributes.isChanged || wasConfigured
    try console.document([
      "version": 1, "scope": .string(scope.rawValue), "attributes": .string(attributes.path),
      "changed": .bool(isChanged),
    ])
    try console.say(
      isChanged ? "git treats databases as binary files again." : "git was not set up for databases here.")
    return .done
  }
}

/// `buckia git textconv`, which git calls to show a file as text.
struct GitTextconvCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "textconv",
    abstract: "Prints a database, a diff file or a changeset as text that can be compared.",
    discussion: """
      Equal databases give equal text, however they are stored: the schema, then the rows of each table by key, one a line.

      Example:
        buckia git textconv notes.sqlite
      """)

  @Argument(help: "The file.")
  var file: String

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    switch FileKind(of: file) {
    case .empty: break
    case .diffFile, .changeset: try printChanges(on: console)
    case .sqlite:
      do {
        try DatabaseManager(file, home: home.folder).forEachTextLine { try console.write($0 + "\n") }
      } catch let error as BuckiaError {
        // An error would stop git's whole output: a damaged or locked state in the history must not do that.
        try console.write("\(error.message.escaped)\n\(FileKind.summary(of: file))\n")
      }
    // Any other file with such a name.
    default: try console.write("\(FileKind.summary(of: file))\n")
    }
    return .done
  }

  private func printChanges(on console: Console) throws {
    let inspected = try DiffInspection.open(ArgumentFile.source(file))
    let style = Style(isColored: false, width: 1 << 20, isFull: true)
    if let id = inspected.id { try console.write("id \(id)\nsender \(inspected.sender.escaped)\n") }
    var table: String?
    try inspected.forEachChange { change in
      if change.table != table {
        table = change.table
        try console.write("\ntable \(change.table.escaped)\n")
      }
      for line in change.lines(style: style) { try console.write(line + "\n") }
    }
  }
}

/// `buckia git merge`, which git calls to merge three versions of a file.
struct GitMergeCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "merge",
    abstract: "Merges three versions of a database for git.",
    discussion: """
      git calls it as a merge driver. OURS becomes the merge. With conflicts, or when it fails, the exit code is 1 and git leaves \
      the path unmerged: the file then holds OURS and what could be merged, and its conflicts are recorded in it.

      Example:
        git config merge.buckia.driver 'buckia git merge %O %A %B %P'
      """)

  @Argument(help: "The version that both began with; an empty file where there is none.")
  var base: String

  @Argument(help: "The version that is merged into.")
  var ours: String

  @Argument(help: "The version whose changes are taken.")
  var theirs: String

  @Argument(help: "The path in the repository.")
  var path: String?

  @OptionGroup var merging: MergingOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let path = path ?? ours
    do {
      for version in [ours, theirs] {
        if let refusal = FileKind.refusal(of: version, where: "an SQLite database"), FileKind(of: version) != .empty {
          throw BuckiaError(.notADatabase, refusal.replacing("\(version): ", with: ""))
        }
      }
      var options = merging.options
      options.incomingName = path.fileName
      let report = try DatabaseManager(ours, home: home.folder).merge(
        theirs, since: ArgumentFile.isThere(base) ? base : nil, options: options)
      if report.isClean { return .done }
      let lines = report.unmergedLines(database: path, style: console.errorStyle)
      console.note((["buckia: \(path.escaped)"] + lines).joined(separator: "\n"))
    } catch {
      // The options in the advice are those of `merge`, which git's driver does not have.
      let message = (BuckiaError.wrapped(error) as? BuckiaError)?.description ?? ErrorReport(error).message
      console.note("buckia: \(path.escaped): \(message.escaped)")
    }
    return .failed
  }
}
