import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// A conflict as it happened: the change still in the bytes of the changeset, the local row where a statement stands.
struct ConflictIncident {
  let kind: ConflictKind
  let change: DecodedChange
  let local: CurrentRow?
  /// SQLite's words about a constraint, as UTF-8.
  var message: [UInt8] = []
}

/// How many rows refer to others that are not there: known, or counted when asked for.
final class ForeignKeyCount {
  private var known: Int?
  private let counting: PreparedStatement?

  /// A number that is known.
  init(_ number: Int) {
    known = number
    counting = nil
  }

  /// All violations of the database, as `PRAGMA foreign_key_check` finds them: every table that has a foreign key is read.
  init(on connection: borrowing SQLiteConnection) throws {
    counting = PreparedStatement(try connection.prepare("SELECT count(*) FROM pragma_foreign_key_check"))
  }

  func number() throws -> Int {
    if let known { return known }
    guard let counting, try counting.statement.step() else { return 0 }
    let number = Int(counting.statement.integer(at: 0))
    counting.statement.reset()
    known = number
    return number
  }
}
