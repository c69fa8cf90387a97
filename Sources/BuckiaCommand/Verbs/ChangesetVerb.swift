import ArgumentParser
import BuckiaDiffFiles
import BuckiaKSUID
import Foundation
import SQLiteChangesets
import SQLiteSchemas

/// `buckia changeset`: what can be done with changes without a database.
struct ChangesetVerb: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "changeset",
    abstract: "Inverts, joins and sorts changes, without a database.",
    discussion: """
      Raw changesets and diff files are taken alike, and - is standard input. A diff file is written when -o ends in \
      .bdiff or is a folder and only diff files went in; otherwise a raw changeset. The result is not signed.

      Example:
        buckia changeset concat monday.changeset tuesday.changeset -o both.changeset
      """,
    subcommands: [ChangesetInvertVerb.self, ChangesetConcatVerb.self, ChangesetSortVerb.self])
}

/// `buckia changeset invert`
struct ChangesetInvertVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "invert",
    abstract: "Writes the changes that undo those of a file.",
    discussion: """
      A patchset cannot be inverted: it does not hold what was there before.

      Example:
        buckia changeset invert today.changeset -o undo.changeset
      """)

  @Argument(help: "The file.")
  var file: String

  @OptionGroup var options: ChangesetOptions

  var output: OutputOptions { options.output }

  func perform(on console: Console) throws -> ExitStatus {
    let began = ContinuousClock.now
    let input = try OpenedChanges(argument: file)
    let inverse = try input.changeset.withBytes { try Changesets.inverted($0) }
    return try ChangesetResult(inverse, from: [input]).write(options, since: began, on: console)
  }
}

/// `buckia changeset concat`
struct ChangesetConcatVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "concat",
    abstract: "Joins the changes of files, oldest first, so that each row is changed once.",
    discussion: """
      Example:
        buckia changeset concat monday.changeset tuesday.changeset -o both.changeset
      """)

  @Argument(help: "The files, in the order in which they would be applied.")
  var files: [String]

  @OptionGroup var options: ChangesetOptions

  var output: OutputOptions { options.output }

  func perform(on console: Console) throws -> ExitStatus {
    let began = ContinuousClock.now
    let inputs = try files.map { try OpenedChanges(argument: $0) }
    let joined = try Changesets.concatenated(inputs.map(\.changeset))
    return try ChangesetResult(joined, from: inputs).write(options, since: began, on: console)
  }
}

/// `buckia changeset sort`
struct ChangesetSortVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "sort",
    abstract: "Orders changes by table, then deletes, updates and inserts, each by key.",
    discussion: """
      That is the order in which they are applied fastest. A table in which one row is changed more than once stays \
      as it is.

      Example:
        buckia changeset sort today.changeset -o sorted.changeset
      """)

  @Argument(help: "The file.")
  var file: String

  @OptionGroup var options: ChangesetOptions

  var output: OutputOptions { options.output }

  func perform(on console: Console) throws -> ExitStatus {
    let began = ContinuousClock.now
    let input = try OpenedChanges(argument: file)
    let sorted = ChangesetSpool()
    let unsorted = try input.changeset.withBytes { bytes in
      let order = try ChangesetOrder(byKeyOf: bytes)
      try order.write(bytes, into: sorted)
      return Set(order.tablesInAuthorOrder.map { TableName($0.name) })
    }
    let inKeyOrder = Set(input.tables.map { TableName($0.header.name) }).subtracting(unsorted)
    return try ChangesetResult(sorted, from: [input], tablesInKeyOrder: inKeyOrder)
      .write(options, since: began, on: console)
  }
}
