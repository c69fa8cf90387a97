import SQLiteChangesets
import SQLiteConnections

/// A conflict as the database keeps it.
public struct ConflictRecord: Identifiable, Sendable {
  /// A column of a row and its value there; nil where the record holds none.
  public typealias Cell = (column: String, value: ChangesetValue?)

  /// The record's number in this database.
  public let id: Int64
  /// The ledger entry of the diff.
  package let entry: Int64
  /// The diff file's id, or the content digest of a raw changeset.
  public let diff: String
  /// The sender of the diff, for people: a contact's name, "you", "unsigned", "a merge", or "key …" with the verified key in hex.
  public package(set) var sender = ""
  /// The verified key of the sender in hex; nil where no signature says whose it is.
  public package(set) var senderKey: String?
  /// The table.
  public let table: String
  /// The row's key.
  public let key: [Cell]
  /// Why the change did not fit.
  public let kind: ConflictKind
  /// What became of it.
  public let outcome: ConflictOutcome
  /// The row as the author saw it.
  public let base: [Cell]?
  /// The row as it was here.
  public let local: [Cell]?
  /// The row as the author wants it.
  public let incoming: [Cell]?
  /// SQLite's or the engine's words, where there are any.
  public let reason: String?
  /// The row that this one refers to and that is not there, for conflicts of the kind ``ConflictKind/foreignKey``.
  public package(set) var parent: MissingParent?
  /// The constraint that refuses the row, for conflicts of the kinds ``ConflictKind/constraint`` and
  /// ``ConflictKind/foreignKey``; nil where it is not known.
  public package(set) var constraint: ViolatedConstraint?
  /// The keys of the local rows that have a UNIQUE value which the incoming row was to get.
  public package(set) var others: [[Cell]] = []
  /// The file of the other side, if the conflict was met in a merge; nil for one of a diff.
  public package(set) var mergedFile: String?
  /// The rule that has decided, by its number; nil where none has.
  public package(set) var rule: Int64?
  /// How it was resolved since it was recorded, last; nil where it was not.
  public package(set) var resolution: ResolutionRecord?

  /// True if it is undecided: by a person, by a rule, and by the app's resolver.
  public var isOpen: Bool { resolution == nil && rule == nil && outcome != .resolved }

  /// What a person calls the row: its title, its name or the like, from the local row or else the incoming one; nil where it has no such
  /// column.
  public var label: String? {
    [local, incoming, base].lazy.compactMap { $0.flatMap { RowLabel.text(of: $0) } }.first
  }
}

/// What a person calls a row, where a column says it.
package enum RowLabel {
  /// The names of such columns, in lower case and without underscores: the first one that a row has counts.
  private static let columns = [
    "title", "name", "label", "subject", "caption", "heading", "headline", "displayname", "fullname", "filename",
    "file",
    "email", "path", "url", "word", "term", "text", "body", "content", "description",
  ]
  private static let limit = 60

  /// The label of a row: a text of one line, shortened.
  package static func text(of cells: [(column: String, value: ChangesetValue?)]) -> String? {
    var found: (place: Int, text: String)?
    for cell in cells {
      guard case .text(let text)? = cell.value, !text.isEmpty,
        let place = columns.firstIndex(of: cell.column.lowercased().filter { $0 != "_" }),
        place < found?.place ?? .max
      else { continue }
      found = (place, text)
    }
    return found.map { found in
      let line = found.text.prefix { !$0.isNewline }
      return line.utf8.count < found.text.utf8.count || line.count > limit ? "\(line.prefix(limit))…" : String(line)
    }
  }
}

/// A row that another one refers to, and that is not there.
public struct MissingParent: Sendable {
  /// Its table.
  public let table: String
  /// The columns that are referred to, and their values.
  public let key: [ConflictRecord.Cell]
  /// The number of the conflict that has left the row out, where it came in the same file.
  public let conflict: Int64?

  /// Makes one.
  package init(table: String, key: [ConflictRecord.Cell], conflict: Int64?) {
    self.table = table
    self.key = key
    self.conflict = conflict
  }
}

/// How many conflicts of one table are alike.
public struct ConflictCount: Hashable, Codable, Sendable {
  /// The table.
  public let table: String
  /// Why the changes did not fit.
  public let kind: ConflictKind
  /// What became of them.
  public let outcome: ConflictOutcome
  /// How many there are.
  public let count: Int
}
