import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The question of a conflict. A rule can give the same answer to conflicts with the same question.
///
/// The question of a conflict is which of two versions of a row counts. It is the same where the table is the same, the kind,
/// what the change does, and the columns in dispute: those in which the local row has neither the value that the author saw nor the one
/// that came in.
public struct ConflictQuestion: Hashable, Codable, Sendable {
  /// The table, whatever the case of its name.
  public let table: TableName
  /// Why the changes do not fit: `data` or `conflict`.
  public let kind: ConflictKind
  /// The operation of the changes.
  public let operation: ChangeOperation
  /// The names of the columns in dispute, sorted. Their case does not matter.
  public let columns: [String]

  /// Makes one.
  ///
  /// - Parameter columns: The columns in dispute, in any order.
  package init(table: TableName, kind: ConflictKind, operation: ChangeOperation, columns: [String]) {
    self.table = table
    self.kind = kind
    self.operation = operation
    self.columns = columns.map { ASCIIName.folded($0) }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}

/// An answer that is kept for all conflicts with the same question.
///
/// It decides between the app's resolver and the policies.
public struct ConflictRule: Hashable, Codable, Identifiable, Sendable {
  /// Its number in this database.
  public let id: Int64
  /// The question that it answers.
  public let question: ConflictQuestion
  /// The answer.
  public let answer: ConflictVersion
  /// The name of the person who has decided.
  public let decidedBy: String
  /// When, in milliseconds since 1970.
  public let decidedAt: Int64
  /// The conflict that it was decided at.
  public let conflict: Int64
}

/// The table `buckia_rule`. Rules that were forgotten stay, since conflicts name the rule that has decided them.
extension ConflictRule {
  static let definition = """
    CREATE TABLE main.buckia_rule(
      rule INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL COLLATE NOCASE,
      kind TEXT NOT NULL,
      operation TEXT NOT NULL,
      columns BLOB NOT NULL,
      answer TEXT NOT NULL,
      conflict INTEGER NOT NULL,
      decided_by TEXT NOT NULL,
      decided_at INTEGER NOT NULL,
      forgotten_at INTEGER
    );
    """

  /// The rules that are in force, oldest first.
  ///
  /// - Parameter table: The table that they are for; nil for all.
  /// - Throws: `SQLiteError`; `ChangesetError` when a rule is damaged.
  package static func all(
    of table: TableName? = nil, on connection: borrowing SQLiteConnection
  ) throws -> [ConflictRule] {
    guard try Ledger.exists(on: connection) else { return [] }
    return try connection.rows(
      of: """
        SELECT rule, table_name, kind, operation, columns, answer, decided_by, decided_at, conflict FROM main.buckia_rule
        WHERE forgotten_at IS NULL AND (?1 IS NULL OR table_name = ?1) ORDER BY rule
        """, table?.text
    ) { row -> ConflictRule? in
      // A rule of a newer version is ignored.
      guard let kind = ConflictKind(rawValue: row.text(at: 2) ?? ""),
        let operation = ChangeOperation(word: row.text(at: 3) ?? ""),
        let answer = ConflictVersion(rawValue: row.text(at: 5) ?? "")
      else { return nil }
      let columns = try ChangesetValue.record(row.blob(at: 4)).compactMap { value -> String? in
        if case .text(let name)? = value { name } else { nil }
      }
      let table = TableName(row.text(at: 1) ?? "")
      return ConflictRule(
        id: row.integer(at: 0),
        question: ConflictQuestion(table: table, kind: kind, operation: operation, columns: columns), answer: answer,
        decidedBy: row.text(at: 6) ?? "", decidedAt: row.integer(at: 7), conflict: row.integer(at: 8))
    }.compactMap { $0 }
  }

  /// Keeps an answer. A rule with the same question is forgotten for it.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a rule is damaged.
  package static func add(
    _ answer: ConflictVersion, to question: ConflictQuestion, by name: String, at time: Int64, of conflict: Int64,
    on connection: borrowing SQLiteConnection
  ) throws -> ConflictRule {
    for rule in try all(of: question.table, on: connection) where rule.question == question {
      if rule.answer == answer { return rule }
      _ = try forget(rule.id, at: time, on: connection)
    }
    var columns = ChangesetWriter()
    for column in question.columns { columns.append(text: column) }
    try connection.run(
      cached: """
        INSERT INTO main.buckia_rule(
          table_name, kind, operation, columns, answer, conflict, decided_by, decided_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        """, question.table.text, question.kind.rawValue, question.operation.word, columns.bytes, answer.rawValue,
      conflict, name, time)
    return ConflictRule(
      id: try connection.integer("SELECT last_insert_rowid()") ?? 0, question: question, answer: answer,
      decidedBy: name, decidedAt: time, conflict: conflict)
  }

  /// Ends a rule. It decides no more conflicts.
  ///
  /// - Returns: True if it was in force.
  package static func forget(_ rule: Int64, at time: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.run(
      cached: "UPDATE main.buckia_rule SET forgotten_at = ?2 WHERE rule = ?1 AND forgotten_at IS NULL", rule, time)
    return connection.changes > 0
  }
}

extension ChangeOperation {
  /// The operation as a word, in the ledger and in documents.
  public var word: String {
    switch self {
    case .insert: "insert"
    case .update: "update"
    case .delete: "delete"
    }
  }

  init?(word: String) {
    guard let operation = Self.allCases.first(where: { $0.word == word }) else { return nil }
    self = operation
  }
}
