import BuckiaApply
import SQLiteSchemas

/// What is done about the first diff of somebody whose rows are mostly here already, with the same integer keys: one database is probably a copy
/// of the other, and no dataset says so.
public enum CopyPolicy: String, Sendable, CaseIterable {
  /// The diff is refused (`from-copy`), and a person decides.
  case ask
  /// Rows with the same key are the same rows, if at least half of their other columns are equal. What differs is a conflict.
  case same
  /// Rows with the same key that differ are different rows: one of them gets another key.
  case apart
}

/// How the integer keys of a first diff meet those that are here.
struct MetKeys {
  /// How many rows are equal to the ones with their keys here.
  var equal = 0
  /// How many are not, and are equal in at least half of their columns.
  var different = 0

  /// Why the diff is refused: the two databases seem to be copies.
  var refusal: Refusal? {
    guard different > 0, equal > different, equal > 1 else { return nil }
    return Refusal(
      .rejected, code: .fromCopy,
      reason:
        "\(equal) of its rows are here with the same keys and values, and \(different) with the same keys and some other values: its sender's "
        + "database and this one seem to be copies of one database, and have been changed since. If they are, apply it with `--copies same`: "
        + "these rows are the same rows then, and what differs is a conflict. If not, apply it with "
        + "`--copies apart`: rows that differ are kept beside each other, with new keys. `buckia init DATABASE --dataset new` before a copy is made saves the question"
    )
  }
}
