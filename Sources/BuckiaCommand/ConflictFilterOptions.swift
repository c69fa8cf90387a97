import ArgumentParser
import Buckia

/// Which recorded conflicts a verb is about.
struct ConflictFilterOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Only those of this table.", valueName: "table"))
  var table: String?

  @Option(
    help: ArgumentHelp("Only those of this diff file: its id, or the digest of a raw changeset.", valueName: "id"))
  var diff: String?

  @Option(help: ArgumentHelp("Only those of this kind.", valueName: "kind"))
  var kind: ConflictKind?

  @Flag(help: "Only undecided ones: by no person, no rule and no resolver of an app.")
  var open = false

  /// The filter that they make.
  var filter: ConflictFilter {
    var filter = ConflictFilter()
    filter.table = table
    filter.diff = diff
    filter.kind = kind
    filter.isOpen = open
    return filter
  }
}

extension ConflictKind: ExpressibleByArgument {}
