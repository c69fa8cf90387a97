import SQLiteSchemas

/// Something that does not travel, or was not compared as asked for, and why. Nothing is left out without one of these.
public struct SkippedItem: Hashable, Codable, Sendable {
  /// The table, or `table.column`, or another object.
  public let name: String
  /// Why.
  public let reason: SkipReason
  /// True if rows or values were left out that differ between the two databases.
  public let leavesRowsOut: Bool

  /// Creates an item.
  ///
  /// - Parameter differs: False where the two databases are known to have the same of it.
  package init(name: String, reason: SkipReason, differs: Bool = true) {
    self.name = name
    self.reason = reason
    leavesRowsOut = differs && reason.code.isAboutRows
  }

  /// Creates an item for something that cannot be replicated.
  package init(name: String, reason: String) { self.init(name: name, reason: SkipReason(.notReplicated, reason)) }
}

/// Why something does not travel, or was not compared as asked for.
public struct SkipReason: Hashable, Codable, Sendable, CustomStringConvertible {
  /// What kind of reason.
  public let code: Code
  /// The arguments: names, types, limits.
  public let arguments: [String]

  /// True if only the table's definition is missing, which a diff file has and a raw changeset has not.
  package var needsDefinition: Bool {
    switch code {
    case .newTableNeedsDefinition, .columnsNeedDefinition, .omittedColumnsNeedDefinition: true
    default: false
    }
  }

  /// Creates a reason.
  package init(_ code: Code, _ arguments: String...) { self.init(code, arguments) }

  /// Creates a reason.
  package init(_ code: Code, _ arguments: [String]) {
    self.code = code
    self.arguments = arguments
  }

  /// A sentence for people.
  public var description: String { code.sentence.filled(with: arguments) }

  /// The kinds of reasons that are told apart. More may come.
  public enum Code: String, Codable, Sendable, CaseIterable {
    // Tables.
    case notReplicated, unlikeOlderTable, unreadable, tableDropped, keyDiffers, tooManyNewTables, notCreatable,
      sizeLimit
    case newTableNeedsDefinition, columnsNeedDefinition, omittedColumnsNeedDefinition
    // Columns.
    case columnDropped, requiredColumnDropped, requiredColumnOmitted, columnNotAddable, tooManyNewColumns, typeChanged
    case collationDropped, invalidUTF16, expressionDefault, generatedColumn
    // Clauses and objects of the schema.
    case newForeignKey, foreignKeyToOldTable, newCheck, changedCheck, conflictClause, keyCollation, uniqueCollation
    case newObject, changedObject, droppedObject
    // The schema as SQL, for adopting it.
    case statementRefused, statementsRefused, statementsTooLong
    // Virtual tables.
    case virtualAndOrdinary, moduleDiffers, virtualColumnsDiffer, moduleArgumentsDiffer, fullTextSettings
    // Why rows were compared and not pages.
    case rowsSelected, comparedByContent, columnsRenamed, definitionDiffers, computedDefault, pagesUnavailable
    case pagesDamaged, pageSizeDiffers, notUTF8, logRestarted

    /// True if rows or values do not travel for it, whatever becomes of definitions.
    fileprivate var isAboutRows: Bool {
      switch self {
      case .notReplicated, .unlikeOlderTable, .unreadable, .keyDiffers, .tooManyNewTables, .notCreatable, .sizeLimit,
        .newTableNeedsDefinition, .columnsNeedDefinition, .omittedColumnsNeedDefinition, .columnNotAddable,
        .tooManyNewColumns, .virtualAndOrdinary, .moduleDiffers, .virtualColumnsDiffer:
        true
      default: false
      }
    }

    /// The sentence for people: `$1` is the first argument, `$*` all of them.
    fileprivate var sentence: String {
      switch self {
      case .notReplicated, .columnNotAddable, .pagesDamaged: "$1"
      case .unlikeOlderTable: "in $1 it is $2"
      case .unreadable: "the virtual table cannot be read: $1"
      case .tableDropped: "the table was dropped; others keep it"
      case .keyDiffers: "its primary key differs between the two databases, so its rows cannot be told apart"
      case .tooManyNewTables: "one diff file creates at most $1 tables; apply this one, then diff again"
      case .notCreatable: "it is new and could not be created elsewhere: $1"
      case .sizeLimit: "there is no room in one diff file for so many tables; apply this one, then diff again"
      case .newTableNeedsDefinition: "it is new, and a raw changeset carries no table definitions"
      case .columnsNeedDefinition: "its columns differ, and a raw changeset carries no table definitions"
      case .omittedColumnsNeedDefinition: "columns are left out, and a raw changeset carries no table definitions"

      case .columnDropped: "the column was dropped; others keep it"
      case .requiredColumnDropped:
        "the column was dropped; others keep it, and being NOT NULL without a default it will refuse new rows there"
      case .requiredColumnOmitted:
        "the column is left out; others who have it get no new rows, since it is NOT NULL without a default"
      case .tooManyNewColumns: "one diff file adds at most $1 columns to a table; apply this one, then diff again"
      case .typeChanged:
        "its type has changed from $1 to $2, which does not travel: where it has the old type, a value that this would alter is a conflict"
      case .collationDropped: "others get the column without its collating sequence $1"
      case .invalidUTF16:
        "some of its text is not valid UTF-16, which changes cannot carry: it travels as SQLite converts it"
      case .expressionDefault: "its default is an expression, which does not travel; its values do"
      case .generatedColumn: "a generated column is computed from its expression, which does not travel"

      case .newForeignKey:
        "its new foreign key to \"$1\" does not travel: foreign keys are made along with their table only"
      case .foreignKeyToOldTable:
        "its foreign key to \"$1\" does not travel: one is made only between tables that are created together"
      case .newCheck: "its CHECK constraints do not travel: the table is created without them"
      case .changedCheck:
        "its CHECK constraints have changed, which does not travel: where the old ones hold, they may refuse rows"
      case .conflictClause: "its ON CONFLICT clauses do not travel: the table is created without them"
      case .keyCollation:
        "its primary key compares \"$1\" by $2, which does not travel: the table is created without that"
      case .uniqueCollation:
        "UNIQUE on \"$1\" compares by $2, and does not travel: the table is created without it"
      case .newObject: "a new $1; definitions of this kind do not travel"
      case .changedObject: "a changed $1; definitions of this kind do not travel"
      case .droppedObject: "the $1 was dropped; others keep it"

      case .statementRefused: "those who adopt the schema do not get it: $1"
      case .statementsRefused: "the schema cannot be adopted by others: $1"
      case .statementsTooLong: "the schema cannot be adopted by others: its statements do not fit into a diff file"

      case .virtualAndOrdinary: "it is a virtual table in one of the two databases, and an ordinary one in the other"
      case .moduleDiffers: "its module is $1 in one of the two databases, and $2 in the other"
      case .virtualColumnsDiffer:
        "its columns differ between the two databases, and those of a virtual table cannot be altered"
      case .moduleArgumentsDiffer: "its definition has changed, which does not travel; its rows do"
      case .fullTextSettings: "its settings ($*) do not travel; its rows do"

      case .rowsSelected: "a condition selects its rows"
      case .comparedByContent: "its rows are told apart by content"
      case .columnsRenamed: "its columns were renamed"
      case .definitionDiffers: "its definition differs between the two databases"
      case .computedDefault: "rows from before a column was added have a default that is computed"
      case .pagesUnavailable: "the $1 database cannot be read by its pages: $2"
      case .pageSizeDiffers: "the pages of the two databases differ in size ($1 and $2 bytes)"
      case .notUTF8: "text is stored as UTF-16"
      case .logRestarted: "other programs keep restarting the write-ahead log of one of the databases"
      }
    }
  }
}
