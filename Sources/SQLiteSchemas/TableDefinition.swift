/// An ordinary column: one whose values travel.
public struct ColumnDefinition: Equatable, Sendable {
  /// The column's name, without quotes.
  public var name: String
  /// The declared type as written, or empty.
  public var declaredType: String
  /// Whether the column is declared NOT NULL.
  public var isNotNull: Bool
  /// The default, when it is a literal. Expressions do not travel.
  public var defaultValue: LiteralDefault?
  /// Whether there is a default that is an expression. Known only of tables read from a database.
  public var hasExpressionDefault: Bool
  /// The collating sequence: `BINARY`, `NOCASE`, `RTRIM`, or a name only the author's application knows.
  public var collation: String

  /// Makes a column.
  public init(
    name: String, declaredType: String = "", isNotNull: Bool = false, defaultValue: LiteralDefault? = nil,
    hasExpressionDefault: Bool = false, collation: String = "BINARY"
  ) {
    self.name = name
    self.declaredType = declaredType
    self.isNotNull = isNotNull
    self.defaultValue = defaultValue
    self.hasExpressionDefault = hasExpressionDefault
    self.collation = collation
  }

  /// The affinity that follows from the declared type.
  public var affinity: Affinity { Affinity(declaredType: declaredType) }
}

/// A generated column. Its expression does not travel: such a column is named, never created.
public struct GeneratedColumn: Equatable, Sendable {
  /// The column's name, without quotes.
  public var name: String
  /// The declared type as written, or empty.
  public var declaredType: String
  /// Whether its values are stored; else they are computed when read.
  public var isStored: Bool

  /// Makes a generated column.
  public init(name: String, declaredType: String = "", isStored: Bool) {
    self.name = name
    self.declaredType = declaredType
    self.isStored = isStored
  }
}

/// A foreign key of a table.
public struct ForeignKey: Equatable, Sendable {
  /// What happens to the child when the parent goes or changes its key.
  public enum Action: String, Sendable, CaseIterable {
    case noAction = "NO ACTION"
    case restrict = "RESTRICT"
    case setNull = "SET NULL"
    case setDefault = "SET DEFAULT"
    case cascade = "CASCADE"
  }

  /// The referencing columns of this table.
  public var columns: [String]
  /// The table referred to.
  public var parent: String
  /// Its columns, or empty for its primary key.
  public var parentColumns: [String]
  /// The action when the parent's key changes.
  public var onUpdate: Action
  /// The action when the parent goes.
  public var onDelete: Action

  /// Makes a foreign key.
  public init(
    columns: [String], parent: String, parentColumns: [String] = [], onUpdate: Action = .noAction,
    onDelete: Action = .noAction
  ) {
    self.columns = columns
    self.parent = parent
    self.parentColumns = parentColumns
    self.onUpdate = onUpdate
    self.onDelete = onDelete
  }
}

/// A table as data: everything of its definition that travels. There is no SQL in it to run.
public struct TableDefinition: Equatable, Sendable {
  /// The table's name, without quotes.
  public var name: String
  /// The ordinary columns, in the order of the changeset.
  public var columns: [ColumnDefinition]
  /// The generated columns, which are not in the changeset.
  public var generated: [GeneratedColumn]
  /// The primary key: indexes into `columns`, in key order. Empty when the table has none and goes by rowid.
  public var primaryKey: [Int]
  /// Whether it is a WITHOUT ROWID table.
  public var isWithoutRowID: Bool
  /// Whether it is a STRICT table.
  public var isStrict: Bool
  /// Whether its INTEGER PRIMARY KEY is AUTOINCREMENT.
  public var isAutoIncrement: Bool
  /// UNIQUE constraints: indexes into `columns`.
  public var unique: [[Int]]
  /// Foreign keys.
  public var foreignKeys: [ForeignKey]
  /// What makes it a virtual table; nil for an ordinary one.
  public var module: VirtualModule?
  /// Whether names of columns are not what they are in the database, because they are no valid UTF-8. Nothing but the
  /// columns is known then. Known only of tables read from a database.
  public var hasMendedNames: Bool

  /// Makes a definition.
  public init(
    name: String, columns: [ColumnDefinition], generated: [GeneratedColumn] = [], primaryKey: [Int] = [],
    isWithoutRowID: Bool = false, isStrict: Bool = false, isAutoIncrement: Bool = false, unique: [[Int]] = [],
    foreignKeys: [ForeignKey] = [], module: VirtualModule? = nil, hasMendedNames: Bool = false
  ) {
    self.name = name
    self.hasMendedNames = hasMendedNames
    self.columns = columns
    self.generated = generated
    self.primaryKey = primaryKey
    self.isWithoutRowID = isWithoutRowID
    self.isStrict = isStrict
    self.isAutoIncrement = isAutoIncrement
    self.unique = unique
    self.foreignKeys = foreignKeys
    self.module = module
  }

  /// The name of the leading column by which tables without a primary key travel.
  ///
  /// It is the form that SQLite's session extension uses since 3.43
  /// (<https://sqlite.org/session/c_session_objconfig_rowid.html>).
  public static let rowIDColumn = "_rowid_"

  /// Whether the table travels by rowid, because it has no primary key.
  public var goesByRowID: Bool { primaryKey.isEmpty }

  /// The name by which the table's rowid can be asked for: one that no column has taken, or nil. Needs no quotes.
  ///
  /// Without a meaning for WITHOUT ROWID tables. See <https://sqlite.org/rowidtable.html>.
  public var rowIDName: String? {
    ["_rowid_", "rowid", "oid"].first { name in
      column(named: name) == nil && !generated.contains { ASCIIName.matches($0.name, name) }
    }
  }

  /// The names of the columns of the table's changeset, in order: the rowid first where the table goes by it.
  public var changesetColumns: [String] {
    (goesByRowID ? [TableDefinition.rowIDColumn] : []) + columns.map(\.name)
  }

  /// The places of the key among `changesetColumns`, in key order.
  public var keyPlaces: [Int] { goesByRowID ? [0] : primaryKey }

  /// The key columns that can hold NULL: SQLite allows it in a PRIMARY KEY outside WITHOUT ROWID tables
  /// (<https://sqlite.org/lang_createtable.html#the_primary_key>).
  public var nullableKeyColumns: [ColumnDefinition] {
    isWithoutRowID ? [] : primaryKey.map { columns[$0] }.filter { !$0.isNotNull }
  }

  /// The key bytes of the table's changeset header: 0 outside the key, else the position in it, from 1.
  public var keyFlags: [UInt8] {
    guard !goesByRowID else { return [1] + [UInt8](repeating: 0, count: columns.count) }
    var flags = [UInt8](repeating: 0, count: columns.count)
    for (position, column) in primaryKey.enumerated() { flags[column] = UInt8(clamping: position + 1) }
    return flags
  }

  /// Whether both tables tell their rows apart by columns of the same names, in the same order.
  public func hasSameKey(as other: TableDefinition) -> Bool {
    primaryKey.count == other.primaryKey.count
      && zip(primaryKey, other.primaryKey).allSatisfy { ASCIIName.matches(columns[$0].name, other.columns[$1].name) }
  }

  /// Whether both tables have the same columns in the same order, generated ones aside, spelled with the same bytes.
  public func hasSameColumns(as other: TableDefinition) -> Bool {
    columns.count == other.columns.count
      && zip(columns, other.columns).allSatisfy { $0.name.utf8.elementsEqual($1.name.utf8) }
  }

  /// Whether both are equal, and spell the names of the table and its columns with the same bytes: to Swift's strings a letter with
  /// its accent is equal to the letter and the accent.
  public func isIdentical(to other: TableDefinition) -> Bool {
    self == other && name.utf8.elementsEqual(other.name.utf8) && hasSameColumns(as: other)
  }

  /// The affinity of a column here: `ANY` in a STRICT table stores everything as it comes
  /// (<https://sqlite.org/stricttables.html>), and so do virtual tables, whatever their columns are declared as.
  ///
  /// - Parameter index: An index into `columns`.
  public func affinity(at index: Int) -> Affinity {
    let column = columns[index]
    if module != nil { return .blob }
    return isStrict && ASCIIName.matches(column.declaredType, "ANY") ? .blob : column.affinity
  }

  /// The index of the column of that name in `columns`, whatever its case.
  public func column(named name: String) -> Int? {
    columns.firstIndex { ASCIIName.matches($0.name, name) }
  }
}

extension TableDefinition {
  /// Takes a column out that is not part of the key; indexes into `columns` follow.
  public mutating func removeColumn(named name: String) {
    guard let removed = column(named: name), !primaryKey.contains(removed) else { return }
    columns.remove(at: removed)
    let shift: (Int) -> Int = { $0 > removed ? $0 - 1 : $0 }
    primaryKey = primaryKey.map(shift)
    unique = unique.filter { !$0.contains(removed) }.map { $0.map(shift) }
    foreignKeys.removeAll { key in key.columns.contains { ASCIIName.matches($0, name) } }
  }
}
