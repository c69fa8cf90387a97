import SQLiteChangesets

/// What rebasing has met: the rows that local and incoming changes do not agree on, and those that have got new keys.
public struct RebaseReport: Sendable {
  /// A row that local and incoming changes do not agree on, and who won.
  public struct Conflict: Sendable {
    /// The table.
    public let table: String
    /// The columns of the row's key and their values.
    public let key: [(column: String, value: ChangesetValue)]
    /// What they do not agree on.
    public let kind: RebaseConflict.Kind
    /// The columns that it is about; empty for the whole row.
    public let columns: [String]
    /// Who won.
    public let winner: RebasePolicy
  }

  /// Who wins where the changes of a row contradict each other.
  public let policy: RebasePolicy
  /// Whether local rows get new keys where the incoming changes insert other rows with the keys they have.
  public let remapsKeys: Bool
  /// How many conflicts there are.
  public let conflictCount: Int
  /// The first ``RebaseConflicts/listLimit`` conflicts.
  public let conflicts: [Conflict]
  /// The rows with new keys.
  public let remappedKeys: [RemappedKey]

  init(
    _ options: RebaseOptions, _ conflicts: RebaseConflicts, _ remappedKeys: [RemappedKey],
    _ definitions: RebaseDefinitions
  ) {
    policy = options.policy
    remapsKeys = options.remapsKeys
    self.remappedKeys = remappedKeys
    conflictCount = conflicts.count
    self.conflicts = conflicts.listed.map { conflict in
      let names = definitions.columns(of: conflict.table)
      func name(_ column: Int) -> String {
        names.flatMap { $0.indices.contains(column) ? $0[column] : nil } ?? "column \(column + 1)"
      }
      return Conflict(
        table: conflict.table,
        key: zip(definitions.keyIndexes(of: conflict.table), conflict.key).map { (name($0), $1) },
        kind: conflict.kind, columns: conflict.columns.map(name), winner: conflict.winner)
    }
  }
}
