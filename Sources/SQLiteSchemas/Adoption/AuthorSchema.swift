/// The schema of an author's database as SQL: what made it, and what was there before.
///
/// It travels beside the definitions, and is used only where the receiver's schema is to become the author's.
package struct AuthorSchema: Equatable, Sendable {
  /// A statement of the author's older database that the newer one no longer has in this form.
  package struct Replaced: Equatable, Sendable {
    /// The statement.
    package let statement: SchemaStatement
    /// What the table held, where it was dropped; else those of its values that its new definition does not keep, nil where it keeps
    /// all of them.
    package let content: TableContent?

    /// Makes an entry.
    package init(_ statement: SchemaStatement, content: TableContent? = nil) {
      self.statement = statement
      self.content = content
    }
  }

  /// What the rows of a table come to: their number, and the sum of a hash of each, whatever their order.
  package struct TableContent: Equatable, Sendable {
    /// How many rows there are.
    package let rows: Int64
    /// The sum of the hashes.
    package let hash: UInt64

    /// Makes a content.
    package init(rows: Int64, hash: UInt64) {
      self.rows = rows
      self.hash = hash
    }
  }

  /// What makes the newer database: tables, then indexes, views and triggers, each in the order in which they were made.
  package let statements: [SchemaStatement]
  /// What has been dropped or replaced since the older one.
  package let replaced: [Replaced]

  /// Makes a schema.
  package init(statements: [SchemaStatement], replaced: [Replaced]) {
    self.statements = statements
    self.replaced = replaced
  }

  /// The tables that have been dropped or made otherwise.
  package var replacedTables: Set<TableName> {
    Set(replaced.map(\.statement).filter { $0.kind == .table }.map(\.name))
  }

  /// The most statements, of either list.
  package static let statementLimit = 50_000

  /// The order of the kinds: what comes later refers to what comes before.
  package static let order: [SchemaStatement.Kind] = [.table, .index, .view, .trigger]

  /// Why the statements contradict each other, or one of them is refused; nil when they may be tried.
  package var refusal: String? {
    for list in [statements, replaced.map(\.statement)] {
      var names: Set<TableName> = []
      var triggers: Set<TableName> = []
      var latest = 0
      for statement in list {
        if let reason = statement.refusal { return "the statement of \(statement.subject) is refused: \(reason)" }
        // Triggers have names of their own, all others share theirs.
        let isNew =
          statement.kind == .trigger
          ? triggers.insert(statement.name).inserted : names.insert(statement.name).inserted
        guard isNew else { return "\(statement.name) is made twice" }
        let place = Self.order.firstIndex(of: statement.kind) ?? 0
        guard place >= latest else { return "\(statement.subject) stands behind what may refer to it" }
        latest = place
      }
    }
    return nil
  }
}
