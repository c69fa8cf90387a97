/// The schema that comes of two which have been changed apart: ours, with what the other side has changed since their base.
///
/// Statements are compared as they stand, object by object. What only one side has changed is taken from that side. Of a table that both
/// have changed, columns that one side has merely added join the other side's definition. Everything else that both have changed
/// is a conflict, and stays as it is here.
package struct SchemaMerge: Sendable {
  /// The merged schema for `SchemaAdoption`; nil where the other side's is that of the base, or cannot travel.
  package private(set) var author: AuthorSchema?
  /// What both sides have changed differently, in the order of the statements.
  package private(set) var conflicts: [SchemaConflict] = []

  /// The tables that the other side has dropped, and that may be dropped here.
  package private(set) var droppedTables: [TableName] = []

  private typealias Statements = [SchemaStatement.Identity: SchemaStatement]
  private let base: Statements
  private let ours: Statements
  private let keptTables: [TableName: String]
  private let returnedTables: Set<TableName>
  private var chosen: [SchemaStatement] = []

  /// Merges.
  ///
  /// - Parameters:
  ///   - base: The statements of the base; none where the two sides have none in common.
  ///   - ours: Those of the database that receives the changes.
  ///   - theirs: The other side's schema, and what of the base it has replaced; nil where it is that of the base, or cannot travel.
  ///   - keptTables: Tables that stay as they are here, since the other side's would lose values of them: by name, with the column that
  ///     has such values, or an empty name for the key.
  ///   - returnedTables: Tables that were dropped here, and come back as they are there, with their indexes and triggers.
  package init(
    base: [SchemaStatement], ours: [SchemaStatement], theirs: AuthorSchema?,
    keeping keptTables: [TableName: String] = [:], returning returnedTables: Set<TableName> = []
  ) {
    self.keptTables = keptTables
    self.returnedTables = returnedTables
    self.base = Dictionary(base.map { ($0.identity, $0) }) { first, _ in first }
    self.ours = Dictionary(ours.map { ($0.identity, $0) }) { first, _ in first }
    guard let theirs else { return }
    for statement in theirs.statements { if let choice = choose(statement) { chosen.append(choice) } }
    let named = Set(theirs.statements.map(\.identity))
    let replaced = theirs.replaced.filter { entry in
      named.contains(entry.statement.identity) || mayDrop(entry.statement)
    }
    // What is only here may be what the others refer to.
    let dropped = Set(replaced.map(\.statement.identity)).subtracting(named)
    droppedTables = replaced.map(\.statement).filter { $0.kind == .table && dropped.contains($0.identity) }.map(\.name)
    chosen += ours.filter {
      !named.contains($0.identity) && !dropped.contains($0.identity) && $0.refusal == nil
    }
    let statements = AuthorSchema.order.flatMap { kind in chosen.filter { $0.kind == kind } }
    author = AuthorSchema(statements: statements, replaced: replaced)
  }

  /// What becomes of an object that the other side has.
  ///
  /// - Returns: Its statement in the merged schema; nil where it has none there.
  private mutating func choose(_ theirs: SchemaStatement) -> SchemaStatement? {
    let base = base[theirs.identity]
    guard let ours = ours[theirs.identity] else {
      guard let base, !returnedTables.contains(theirs.table) else { return theirs }
      if !base.equalsIgnoringWhiteSpace(theirs) { conflicts.append(SchemaConflict(.droppedHere, theirs)) }
      return nil
    }
    if base?.equalsIgnoringWhiteSpace(theirs) == true || ours.equalsIgnoringWhiteSpace(theirs) { return ours }
    if theirs.kind == .table, let column = keptTables[theirs.name] {
      let isDropped = CreateTableParts(parsing: theirs.sql)?.definition(ofColumn: column) == nil
      conflicts.append(
        column.isEmpty
          ? SchemaConflict(.bothChanged, theirs)
          : SchemaConflict(isDropped ? .droppedThere : .bothChanged, "column", "\(theirs.name).\(column)"))
      return ours
    }
    if base?.equalsIgnoringWhiteSpace(ours) == true { return theirs }
    if theirs.kind == .table, let merged = mergedTable(base, ours, theirs) { return merged }
    conflicts.append(SchemaConflict(.bothChanged, theirs))
    return ours
  }

  /// True if an object that the other side has dropped can be dropped here.
  private mutating func mayDrop(_ base: SchemaStatement) -> Bool {
    guard let ours = ours[base.identity] else { return true }
    if ours.equalsIgnoringWhiteSpace(base) { return true }
    conflicts.append(SchemaConflict(.droppedThere, base))
    return false
  }

  // MARK: Columns

  /// A table with the columns that one side, or each, has added to it; nil where that is not all that was done.
  private mutating func mergedTable(
    _ base: SchemaStatement?, _ ours: SchemaStatement, _ theirs: SchemaStatement
  ) -> SchemaStatement? {
    guard let mine = CreateTableParts(parsing: ours.sql), let others = CreateTableParts(parsing: theirs.sql) else {
      return nil
    }
    guard let base = base.flatMap({ CreateTableParts(parsing: $0.sql) }) else {
      // Both have made it: one may be the other with more columns.
      if mine.addedColumns(in: others) != nil { return theirs }
      return others.addedColumns(in: mine) != nil ? ours : nil
    }
    if let added = base.addedColumns(in: others) { return adding(added, to: mine, of: ours) }
    if let added = base.addedColumns(in: mine) { return adding(added, to: others, of: theirs) }
    return nil
  }

  /// A table's statement with more columns, but for those that it has.
  private mutating func adding(
    _ columns: [String], to parts: CreateTableParts, of statement: SchemaStatement
  ) -> SchemaStatement? {
    var missing: [String] = []
    for column in columns {
      guard let name = CreateTableParts.name(inColumn: column) else { return nil }
      guard let present = parts.definition(ofColumn: name) else {
        missing.append(column)
        continue
      }
      // Where the other side has rebuilt the table, its definition of the column is not ours.
      guard CreateTableParts.isSame(present, column) else { return nil }
    }
    guard !missing.isEmpty else { return statement }
    return parts.adding(missing).map {
      SchemaStatement(.table, name: statement.name.text, table: statement.table.text, sql: $0)
    }
  }
}

/// Something in the schemas of two databases that both have changed since their common base, each in another way.
///
/// What the receiving side has stays as it is.
public struct SchemaConflict: Hashable, Codable, Sendable, CustomStringConvertible {
  /// What the two sides have done.
  public enum Kind: String, Codable, Sendable, CaseIterable {
    /// Both have changed it, or both have made it, differently.
    case bothChanged = "both-changed"
    /// It was dropped here, and changed on the other side. A table or column is there again, with the values of the other side.
    case droppedHere = "dropped-here"
    /// It was changed here, and dropped on the other side. It stays.
    case droppedThere = "dropped-there"
  }

  /// What the two sides have done.
  public let kind: Kind
  /// What it is: `table`, `column`, `index`, `view` or `trigger`.
  public let object: String
  /// Its name; of a column with that of its table, as `table.column`.
  public let name: String

  /// Makes a conflict.
  package init(_ kind: Kind, _ object: String, _ name: String) {
    self.kind = kind
    self.object = object
    self.name = name
  }

  init(_ kind: Kind, _ statement: SchemaStatement) {
    self.init(kind, statement.kind.rawValue, statement.name.text)
  }

  /// A sentence for people.
  public var description: String {
    switch kind {
    case .bothChanged: "both sides have changed the \(object) \"\(name)\" differently; the one that is here stays"
    case .droppedHere:
      "the \(object) \"\(name)\" was dropped here, and the other side has changed it; "
        + (["table", "column"].contains(object)
          ? "it is here again, with the values of the other side" : "it stays dropped")
    case .droppedThere: "the other side has dropped the \(object) \"\(name)\", which was changed here; it stays"
    }
  }
}
