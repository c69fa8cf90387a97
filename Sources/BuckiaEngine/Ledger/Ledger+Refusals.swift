import BuckiaKSUID
import SQLiteConnections

/// Files that were refused. They occupy no id and block nothing; the record says why, and is bounded.
extension Ledger {
  /// The most refused files that are remembered; the oldest go first.
  public static let refusalLimit = 1_000
  /// The longest reason that is kept, in characters.
  private static let reasonLimit = 1_000
  /// The longest file name that is kept, in characters.
  private static let nameLimit = 255

  /// A file that was refused.
  public struct Refusal: Sendable {
    /// SHA-256 of the file's bytes.
    public let digest: [UInt8]
    /// The id it claims, if it could be read that far.
    public let id: KSUID?
    /// The verified sender, or empty.
    public let sender: String
    /// `quarantined` or `rejected`.
    public let state: DiffState
    /// Why.
    public let reason: String
    /// The file's name without its folder.
    public let file: String

    /// Makes a refusal.
    public init(digest: [UInt8], id: KSUID?, sender: String, state: DiffState, reason: String, file: String) {
      self.digest = digest
      self.id = id
      self.sender = sender
      self.state = state
      self.reason = reason
      self.file = file
    }
  }

  /// Records a refused file, or that it was refused once more.
  public static func record(
    _ refusal: Refusal, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    let statement = try connection.prepare(
      """
      INSERT INTO main.buckia_refused(digest, diff, sender, state, reason, file, first_at, last_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
      ON CONFLICT (digest) DO UPDATE SET
        state = excluded.state, reason = excluded.reason, file = excluded.file, last_at = excluded.last_at,
        times = times + 1
      """)
    try statement.bind(refusal.digest, at: 0)
    try statement.bind(optional: refusal.id?.description, at: 1)
    try statement.bind(refusal.sender, at: 2)
    try statement.bind(refusal.state.rawValue, at: 3)
    try statement.bind(String(refusal.reason.prefix(reasonLimit)), at: 4)
    try statement.bind(String(refusal.file.prefix(nameLimit)), at: 5)
    try statement.bind(time, at: 6)
    try statement.run()
    try connection.execute(
      """
      DELETE FROM main.buckia_refused WHERE digest IN (
        SELECT digest FROM main.buckia_refused ORDER BY last_at DESC, digest LIMIT -1 OFFSET \(refusalLimit))
      """)
  }

  /// Forgets that a file was refused, because it has been applied now.
  public static func forgetRefusal(ofFile digest: [UInt8], on connection: borrowing SQLiteConnection) throws {
    let delete = try connection.cached("DELETE FROM main.buckia_refused WHERE digest = ?1")
    try delete.statement.bind(digest, at: 0)
    try delete.statement.run()
  }
}
