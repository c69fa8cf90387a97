/// How recorded conflicts are resolved.
public struct ResolveOptions: Sendable {
  /// Who decides, as it is recorded: a name that people know.
  public var decidedBy: String
  /// Whether rows that have been changed since are overwritten, and whether a row may refer to one that is not there.
  public var isForced: Bool
  /// Whether the answer is kept as a rule for the same question, and decides later conflicts.
  public var remembers: Bool
  /// Whether only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool
  /// How many keys of changed rows the report lists, for an app that shows them; 0 for none.
  public var changedRowLimit = 0
  /// The last resolution that whoever decides has seen of a conflict, by the conflict's number; 0 for none. Where there is a
  /// later one, nothing is resolved (`rowChanged`).
  package var seenResolutions: [Int64: Int64] = [:]

  /// Makes options; the defaults are those of the command line.
  public init(
    decidedBy: String = "", isForced: Bool = false, remembers: Bool = false, isDryRun: Bool = false
  ) {
    self.decidedBy = decidedBy
    self.isForced = isForced
    self.remembers = remembers
    self.isDryRun = isDryRun
  }
}
