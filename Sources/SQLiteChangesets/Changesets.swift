/// What can be done with whole changesets: invert, join, sort.
///
/// All of them check their input completely before the first byte is written, take any bytes safely, and write into a
/// `ChangesetSpool`, which leaves memory for a file when the result is large. Nothing here knows a database; everything
/// follows from the bytes. See <https://sqlite.org/session/intro.html> for SQLite's own calls of these names.
///
/// ```swift
/// let undo = try Changesets.inverted(bytes)
/// let both = try Changesets.concatenated([monday, tuesday])
/// try both.withBytes { try Changesets.sorted($0, into: output) }
/// ```
public enum Changesets {}
