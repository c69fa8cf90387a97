import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The reason why a file is not applied, for the report and the ledger.
package struct Refusal: Error, Sendable {
  /// What becomes of the file.
  package let state: DiffState
  /// The code of the error behind it.
  package let code: BuckiaErrorCode
  /// A sentence for people.
  package let reason: String
  /// True if the ledger records the refusal. It does not if only the machine lacks a resource.
  package let isRecorded: Bool
  /// True if the file may be readable another time. Later files of its sender must not overtake it.
  package let isPassing: Bool

  /// Creates a refusal.
  package init(
    _ state: DiffState, code: BuckiaErrorCode, reason: String, isRecorded: Bool = true, isPassing: Bool = false
  ) {
    self.state = state
    self.code = code
    self.reason = reason
    self.isRecorded = isRecorded
    self.isPassing = isPassing
  }
}

/// An error that may be a single file's fault, not the database's or the machine's.
package protocol FileFault: Error {
  /// The refusal of the file; nil if the file is not at fault.
  var refusal: Refusal? { get }
}

extension Refusal: FileFault {
  package var refusal: Refusal? { self }

  static let equivocation = Refusal(
    .rejected, code: .equivocation,
    reason: "another file with the same sender and id was applied before; its sender made two of them")
  /// - Parameters:
  ///   - time: The time in the file's id, in seconds since 1970.
  ///   - now: The present time.
  static func waiting(until time: Int64, _ now: Int64) -> Refusal {
    Refusal(
      .waiting, code: .fromTheFuture,
      reason:
        "its id is of \(calendarTime(time)), \(span(of: time - now)) ahead of this clock; "
        + "it waits until then (is this clock right?)")
  }

  static func tooMuch(_ bytes: Int64, after known: Int64, limit: Int64) -> Refusal {
    Refusal(
      .quarantined, code: .overLimit,
      reason:
        "it brings \(bytes) bytes of changes, and its sender has brought \(known) today; one may bring \(limit) in a day. It is tried again "
        + "tomorrow; if it is to come at once, let it through by applying it by its path")
  }

  static func behind(_ name: String) -> Refusal {
    Refusal(
      .waiting, code: .behindUnread,
      reason: "it waits for \(name), which cannot be read for now: it may build on what that file does",
      isRecorded: false)
  }
}

/// Refusals about the dataset of a diff.
extension Refusal {
  /// - Parameters:
  ///   - dataset: That of the diff.
  ///   - own: That of the database; nil for none.
  static func dataset(_ dataset: [UInt8], insteadOf own: [UInt8]?) -> Refusal {
    let theirs = LedgerSettings.text(ofDataset: dataset)
    let mine = own.map { "to the dataset \(LedgerSettings.text(ofDataset: $0))" } ?? "to none"
    return Refusal(
      .rejected, code: .otherDataset,
      reason:
        "it is of the dataset \(theirs), and this database belongs \(mine): it was made from another shared database; apply it to a "
        + "copy of that one, or, if the two are one, make this database part of it with `buckia init DATABASE --dataset \(theirs)`"
    )
  }
}

/// Refusals about the sender of a diff.
extension Refusal {
  /// True if a waiting file stops waiting, because the refusal is about its sender or dataset.
  var endsWaiting: Bool { code == .untrusted || code == .endedKey || code == .otherDataset }

  private static let mode = "this database trusts known senders only"

  static let rawOfNobody = Refusal(
    .quarantined, code: .untrusted,
    reason: "\(mode), and a raw changeset has none; ask its sender for a signed diff file")
  static let unsigned = Refusal(
    .quarantined, code: .untrusted,
    reason: "\(mode), and this file is unsigned; ask its sender for a signed one")

  static func stranger(key: String) -> Refusal {
    Refusal(
      .quarantined, code: .untrusted,
      reason:
        "\(mode), and the key \(key.prefix(16))… that has signed this file is unknown here; ask its sender for their card, "
        + "then `buckia contact add CARD` and `buckia contact trust NAME`, and it is applied the next time")
  }

  static func unconfirmed(_ name: String, fingerprint: String) -> Refusal {
    Refusal(
      .quarantined, code: .untrusted,
      reason:
        "\(mode), and the contact \(EscapedText.quoted(name)) is not trusted yet; compare the fingerprint \(fingerprint) with "
        + "them, then `buckia contact trust NAME`, and it is applied the next time")
  }

  static func unconfirmedKey(_ key: String, of name: String) -> Refusal {
    let contact = EscapedText.quoted(name)
    return Refusal(
      .quarantined, code: .untrusted,
      reason:
        "it goes on with the shares of the contact \(contact), but is signed with the key \(key.prefix(16))…, which is not known as theirs; if "
        + "they have new keys, ask for `buckia identity show --rotation`, then `buckia contact add` that and `buckia contact trust \(contact)`, "
        + "and it is applied the next time")
  }

  static func removedSender(_ name: String) -> Refusal {
    Refusal(
      .rejected, code: .endedKey,
      reason:
        "the contact \(EscapedText.quoted(name)), whose key has signed it, was removed: nothing signed with that key is applied any more"
    )
  }

  static func replacedKey(of name: String) -> Refusal {
    Refusal(
      .rejected, code: .endedKey,
      reason:
        "it is signed with a key that the contact \(EscapedText.quoted(name)) has replaced, and anybody who has the old key may have made it since; "
        + "their next share, signed with the new key, holds what it says: ask them for one (`buckia share`, with `--resync` if it "
        + "was made already)")
  }
}

/// Refusals about the place of a diff in its stream.
extension Refusal {
  static func missing(_ id: KSUID, sequence: Int64, wasRefused: Bool = false) -> Refusal {
    let fate = wasRefused ? "was refused" : "has not arrived"
    return Refusal(
      .waiting, code: .missingPredecessor,
      reason:
        "it builds on \(id), number \(sequence) of its stream, which \(fate); it is applied once that is: ask its sender "
        + "for that file, or for a snapshot of the stream (`buckia share --resync`)")
  }

  static func fork(from other: KSUID) -> Refusal {
    Refusal(
      .waiting, code: .forkedStream,
      reason:
        "its stream forks: \(other) was applied, and has its place. Its sender's database was probably copied, or "
        + "restored from a backup: ask the sender for a snapshot (`buckia share --resync`)")
  }

  static func otherPredecessor(_ id: KSUID) -> Refusal {
    Refusal(
      .rejected, code: .otherPredecessor,
      reason:
        "it names a file with the id \(id) as the one before it, and another file with this id was applied here; one of "
        + "them is not its sender's, or its sender made two of them")
  }

  static func ended(by snapshot: KSUID) -> Refusal {
    Refusal(
      .rejected, code: .endedStream,
      reason: "its stream has ended: the snapshot \(snapshot) took its place before this was made")
  }

  static let behindDeletions = Refusal(
    .waiting, code: .forgottenDeletions,
    reason:
      "its sender has not applied what was shared with them since, and the deletions in it are no longer on record here, so "
      + "it might bring deleted rows back; share everything with them again (`buckia share --resync`), then ask them to do the same"
  )

  static let beforeDeletions = Refusal(
    .waiting, code: .forgottenDeletions,
    reason:
      "it was made before deletions that are no longer on record here, and might bring the deleted rows back; ask its sender for a "
      + "newer diff (`buckia diff --again`), or for a snapshot (`buckia share --resync`)")

  static func contained(in snapshot: KSUID) -> Refusal {
    Refusal(
      .alreadyApplied, code: .alreadyApplied,
      reason: "the snapshot \(snapshot), which was applied before, contains its changes",
      isRecorded: false)
  }
}

extension ReplicationError: FileFault {
  package var refusal: Refusal? {
    guard code != .cancelled, code != .transactionLost, code != .deferredViolations else { return nil }
    // The damage is not the file's, and a damaged database is written to as little as can be.
    return Refusal(.rejected, code: code, reason: description, isRecorded: code != .damagedDatabase)
  }
}

extension ChangesetError: FileFault {
  package var refusal: Refusal? {
    Refusal(.rejected, code: BuckiaErrorCode(rawValue: code.rawValue), reason: description)
  }
}

extension SQLiteError: FileFault {
  package var refusal: Refusal? {
    guard isAboutTheChanges else { return nil }
    return Refusal(.rejected, code: BuckiaErrorCode(self), reason: LedgerError(self)?.message ?? description)
  }

  /// True if the changes, or their effects in this schema, are at fault rather than the database or the machine.
  /// Another diff may well succeed. If a code leaves that open, `FaultDiagnosis` decides.
  ///
  /// Of the [primary result codes](https://sqlite.org/rescode.html#primary_result_code_list) these stop the work: busy and
  /// locked (5, 6, 15), out of memory (7), interrupted (9), failed input or output (10), a damaged database or none at all
  /// (11, 26), a full disk (13), a file that cannot be opened or is too large for the system (14, 22), and the caller's own
  /// mistakes (4, 21).
  private var isAboutTheChanges: Bool {
    if isAboutLedger { return isTooBig }
    return switch primaryCode {
    // An SQL error or a limit; a function, an authorizer or a virtual table that refuses; a value that is too large, or of
    // another type than its column takes; a constraint, or a trigger's RAISE.
    case 1, 2, 3, 12, 16, 17, 18, 19, 20, 23, 24, 25: true
    default: false
    }
  }
}

/// A time in UTC, as people write it: `4 March 2090, 14:05`.
private func calendarTime(_ seconds: Int64) -> String {
  // Years begin in March here, which makes the leap day the last:
  let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400)
  let (era, day) = (days / 146_097, days % 146_097)
  let yearOfEra = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
  let dayOfYear = day - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  let month = (5 * dayOfYear + 2) / 153
  let year = era * 400 + yearOfEra + (month >= 10 ? 1 : 0)
  let names = [
    "March", "April", "May", "June", "July", "August", "September", "October", "November", "December", "January",
    "February",
  ]
  let minute = rest / 60 % 60
  return
    "\(dayOfYear - (153 * month + 2) / 5 + 1) \(names[Int(month)]) \(year), \(rest / 3_600):\(minute < 10 ? "0" : "")\(minute) UTC"
}

/// A number of seconds in the largest unit that it is more than one of.
private func span(of seconds: Int64) -> String {
  let units: [(Int64, String)] = [(31_556_952, "years"), (86_400, "days"), (3_600, "hours"), (60, "minutes")]
  let unit = units.first { seconds >= 2 * $0.0 } ?? (1, "seconds")
  return "\(seconds / unit.0) \(unit.1)"
}

/// Determines the fault if SQLite's result code leaves open whether a file, the database or the machine is at fault.
enum FaultDiagnosis {
  /// The precise error for one that a file's changes have met.
  ///
  /// - Parameter connection: The database, before anything is rolled back.
  static func refined(_ error: any Error, on connection: borrowing SQLiteConnection) -> any Error {
    guard let failure = error as? SQLiteError, !failure.isAboutLedger else { return error }
    if failure.isFullDisk, let table = tableWithoutIDs(on: connection) {
      return ReplicationError(
        .noIDsLeft,
        "the table \(EscapedText.quoted(table)) with AUTOINCREMENT has given out the greatest id there is, so that no row can be added to it",
        table: table, cause: failure)
    }
    if failure.isCorrupt { return ReplicationError.damaged(table: nil, failure) }
    // The transaction is open, and the database can be written: a virtual table refuses it, or a trigger wants the
    // impossible.
    if failure.isReadOnly, failure.primaryCode == failure.code, connection.transactionState == .write {
      return Refusal(.rejected, code: BuckiaErrorCode(failure), reason: failure.message)
    }
    return error
  }

  /// The greatest rowid. See <https://sqlite.org/autoinc.html>.
  private static let greatestID = Int64.max

  /// A table with AUTOINCREMENT that has used its greatest id, which SQLite reports as a full disk.
  private static func tableWithoutIDs(on connection: borrowing SQLiteConnection) -> String? {
    do {
      let schemas = try connection.rows(of: "SELECT name FROM pragma_database_list") { $0.text(at: 0) ?? "" }
      for schema in schemas.map({ SQLText.identifier($0) }) {
        let hasCounters =
          "SELECT 1 FROM \(schema).sqlite_schema WHERE type = 'table' AND name = 'sqlite_sequence'"
        guard try connection.integer(hasCounters) != nil else { continue }
        let used = "SELECT name FROM \(schema).sqlite_sequence WHERE CAST(seq AS INTEGER) = \(greatestID)"
        if let table = try connection.text(used) { return table }
        // A row with the greatest id counts, too, regardless of the counter.
        let counting = "SELECT name FROM \(schema).sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
        let tables = try connection.rows(of: counting) { $0.text(at: 0) ?? "" }
        for table in tables {
          let row = "SELECT 1 FROM \(schema).\(SQLText.identifier(table)) WHERE rowid = \(greatestID)"
          if try connection.integer(row) != nil { return table }
        }
      }
    } catch {
      // What keeps us from looking is a failure of the database, as the first one then is.
    }
    return nil
  }
}

extension ReplicationError {
  /// The error for damage in the local database.
  ///
  /// - Parameter table: The table whose changes met the damage, which may lie in an index of it, too.
  static func damaged(table: String?, _ cause: SQLiteError) -> ReplicationError {
    let place = table.map { "in table \(EscapedText.quoted($0)) or what belongs to it" } ?? "where it is needed"
    return ReplicationError(
      .damagedDatabase, "the local database is damaged \(place) (\(cause.message)); restore a backup", table: table,
      cause: cause)
  }
}

/// Makes SQLite roll back single statements instead of the whole transaction, to find the cause of a failure before
/// everything is gone.
///
/// When SQLite finds "the disk full", it keeps the transaction only for a statement that has a journal of its own. It gives one
/// to statements that write several rows and may be aborted, which a trigger with `RAISE(ABORT)` makes of any.
/// See <https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction>.
extension ApplySession {
  /// Creates a TEMP trigger without effect on every table that has none.
  ///
  /// The transaction must be rolled back afterwards, which takes the triggers away.
  ///
  /// - Throws: `SQLiteError`.
  func requireStatementRollback() throws {
    for entry in try schema().entries where entry.kind == .table {
      for event in ["INSERT", "UPDATE", "DELETE"] {
        let name = SQLText.identifier("\(SQLiteConnection.temporaryPrefix)statement_\(event)_\(entry.name.text)")
        try connection.execute(
          """
          CREATE TEMP TRIGGER IF NOT EXISTS \(name) BEFORE \(event) ON main.\(entry.name.quoted) WHEN 0 BEGIN
            SELECT RAISE(ABORT, '');
          END
          """)
      }
    }
  }
}
