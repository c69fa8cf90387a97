import BuckiaBytes

/// A column whose values are stored in the table, so that they are part of a changeset.
package struct ColumnDefinition: Equatable, Sendable {
  /// The column's name, without quotes.
  package var name: String
  /// The declared type as written, or empty.
  package var declaredType: String
  /// True if the column is declared NOT NULL.
  package var isNotNull: Bool
  /// The default if it is a literal. Expressions are not part of a diff.
  package var defaultValue: LiteralDefault?
  /// True if the default is an expression. Only set for tables read from a database.
  package var hasExpressionDefault: Bool
  /// The collating sequence: `BINARY`, `NOCASE`, `RTRIM`, or one that an application defines.
  package var collation: String

  /// Creates a column.
  package init(
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

  /// The affinity of the declared type.
  package var affinity: Affinity { Affinity(declaredType: declaredType) }
}

/// A generated column. Its expression is not part of a diff, so a receiver never creates it.
package struct GeneratedColumn: Equatable, Sendable {
  /// The column's name, without quotes.
  package var name: String
  /// The declared type as written, or empty.
  package var declaredType: String
  /// True if the column is STORED; false for VIRTUAL.
  package var isStored: Bool

  /// Creates a generated column.
  package init(name: String, declaredType: String = "", isStored: Bool) {
    self.name = name
    self.declaredType = declaredType
    self.isStored = isStored
  }
}

/// A foreign key of a table. See <https://sqlite.org/foreignkeys.html>.
package struct ForeignKey: Equatable, Sendable {
  /// What happens to child rows when the parent row is deleted or its key changes.
  package enum Action: String, Sendable, CaseIterable {
    case noAction = "NO ACTION"
    case restrict = "RESTRICT"
    case setNull = "SET NULL"
    case setDefault = "SET DEFAULT"
    case cascade = "CASCADE"
  }

  /// The columns of this table, the child.
  package var columns: [String]
  /// The parent table.
  package var parent: String
  /// The columns of the parent table; empty for its primary key.
  package var parentColumns: [String]
  /// The action when the key of the parent row changes.
  package var onUpdate: Action
  /// The action when the parent row is deleted.
  package var onDelete: Action

  /// Creates a foreign key.
  package init(
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

/// The definition of a table as data: the parts that a diff contains. Nothing in it is run as SQL.
package struct TableDefinition: Equatable, Sendable {
  /// The table's name, without quotes.
  package var name: String
  /// The columns in the order of the changeset, without generated ones.
  package var columns: [ColumnDefinition]
  /// The generated columns, which are not part of the changeset.
  package var generated: [GeneratedColumn]
  /// The primary key: indexes into `columns`, in key order. Empty when the rowid is the key.
  package var primaryKey: [Int]
  /// True if it is a WITHOUT ROWID table.
  package var isWithoutRowID: Bool
  /// True if it is a STRICT table.
  package var isStrict: Bool
  /// True if the INTEGER PRIMARY KEY is AUTOINCREMENT.
  package var isAutoIncrement: Bool
  /// The UNIQUE constraints, each a list of indexes into `columns`.
  package var unique: [[Int]]
  /// The foreign keys.
  package var foreignKeys: [ForeignKey]
  /// The module of a virtual table; nil for an ordinary table.
  package var module: VirtualModule?
  /// True if column names were repaired because they are not valid UTF-8 in the database. Then nothing but the columns is
  /// known. Only set for tables read from a database.
  package var hasRepairedNames: Bool

  /// Creates a definition.
  package init(
    name: String, columns: [ColumnDefinition], generated: [GeneratedColumn] = [], primaryKey: [Int] = [],
    isWithoutRowID: Bool = false, isStrict: Bool = false, isAutoIncrement: Bool = false, unique: [[Int]] = [],
    foreignKeys: [ForeignKey] = [], module: VirtualModule? = nil, hasRepairedNames: Bool = false
  ) {
    self.name = name
    self.hasRepairedNames = hasRepairedNames
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

  /// The name of the first changeset column of a table without a primary key: its rowid.
  ///
  /// The session extension of SQLite records such tables this way since 3.43
  /// (<https://sqlite.org/session/c_session_objconfig_rowid.html>).
  package static let rowIDColumn = "_rowid_"

  /// True if the rowid is the key in a changeset, because the table has no primary key.
  package var isKeyedByRowID: Bool { primaryKey.isEmpty }

  /// A name for the rowid that no column hides; nil when columns hide all of them. Needs no quotes.
  ///
  /// Not meaningful for WITHOUT ROWID tables. See <https://sqlite.org/rowidtable.html>.
  package var rowIDName: String? {
    ["_rowid_", "rowid", "oid"].first { name in
      column(named: name) == nil && !generated.contains { ASCIIName.matches($0.name, name) }
    }
  }

  /// The columns of the table's changeset, in order: the rowid first if it is the key.
  package var changesetColumns: [String] {
    (isKeyedByRowID ? [TableDefinition.rowIDColumn] : []) + columns.map(\.name)
  }

  /// The key: indexes into `changesetColumns`, in key order.
  package var keyIndexes: [Int] { isKeyedByRowID ? [0] : primaryKey }

  /// The key columns that can hold NULL, which SQLite allows in a PRIMARY KEY except in WITHOUT ROWID tables
  /// (<https://sqlite.org/lang_createtable.html#the_primary_key>).
  package var nullableKeyColumns: [ColumnDefinition] {
    isWithoutRowID ? [] : primaryKey.map { columns[$0] }.filter { !$0.isNotNull }
  }

  /// The key flags of the table's changeset header: for each column its position in the key, from 1; 0 outside the key.
  package var keyFlags: [UInt8] {
    guard !isKeyedByRowID else { return [1] + [UInt8](repeating: 0, count: columns.count) }
    var flags = [UInt8](repeating: 0, count: columns.count)
    for (position, column) in primaryKey.enumerated() { flags[column] = UInt8(clamping: position + 1) }
    return flags
  }

  /// The affinity of each column of the changeset.
  package var changesetAffinities: [Affinity] {
    (isKeyedByRowID ? [.integer] : []) + columns.indices.map { affinity(at: $0) }
  }

  /// True if the primary keys of both tables have the same column names in the same order.
  package func hasSameKey(as other: TableDefinition) -> Bool {
    primaryKey.count == other.primaryKey.count
      && zip(primaryKey, other.primaryKey).allSatisfy { ASCIIName.matches(columns[$0].name, other.columns[$1].name) }
  }

  /// True if both tables have the same column names in the same order, byte for byte. Generated columns do not count.
  package func hasSameColumns(as other: TableDefinition) -> Bool {
    columns.count == other.columns.count
      && zip(columns, other.columns).allSatisfy { $0.name.utf8.elementsEqual($1.name.utf8) }
  }

  /// True if both definitions are equal, with equal bytes in the names of the table and its columns. `==` alone treats
  /// composed and decomposed letters as equal.
  package func isIdentical(to other: TableDefinition) -> Bool {
    self == other && name.utf8.elementsEqual(other.name.utf8) && hasSameColumns(as: other)
  }

  /// The affinity of a column in this table.
  ///
  /// Columns of type `ANY` in a STRICT table (<https://sqlite.org/stricttables.html>) and columns of virtual tables have
  /// none, so that values are stored unchanged.
  ///
  /// - Parameter index: An index into `columns`.
  package func affinity(at index: Int) -> Affinity {
    let column = columns[index]
    if module != nil { return .blob }
    return isStrict && ASCIIName.matches(column.declaredType, "ANY") ? .blob : column.affinity
  }

  /// The index into `columns` of the column with a name, in any case.
  package func column(named name: String) -> Int? {
    columns.firstIndex { ASCIIName.matches($0.name, name) }
  }

  /// Removes a column that is not part of the key, and adjusts the indexes into `columns`.
  package mutating func removeColumn(named name: String) {
    guard let removed = column(named: name), !primaryKey.contains(removed) else { return }
    columns.remove(at: removed)
    let shift: (Int) -> Int = { $0 > removed ? $0 - 1 : $0 }
    primaryKey = primaryKey.map(shift)
    unique = unique.filter { !$0.contains(removed) }.map { $0.map(shift) }
    foreignKeys.removeAll { key in key.columns.contains { ASCIIName.matches($0, name) } }
  }
}

/// The name of a table. Names that SQLite treats as the same are equal.
public struct TableName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The name as written, without quotes.
  public let text: String
  private let folded: String

  /// Creates a name.
  ///
  /// - Parameter text: The name without quotes.
  public init(_ text: String) {
    self.text = text
    folded = ASCIIName.folded(text)
  }

  /// Creates a name from a literal without quotes.
  public init(stringLiteral value: String) { self.init(value) }

  /// The name as written, without quotes.
  public var description: String { text }

  /// The name as an SQL identifier.
  public var quoted: String { SQLText.identifier(text) }

  /// True if SQLite treats two names as the same.
  ///
  /// Compares bytes, because Swift's strings treat composed and decomposed letters as equal and SQLite does not.
  public static func == (first: TableName, second: TableName) -> Bool {
    first.folded.utf8.elementsEqual(second.folded.utf8)
  }

  /// Hashes the bytes that `==` compares.
  public func hash(into hasher: inout Hasher) {
    var folded = folded
    hasher.combine(folded.utf8.count)
    folded.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }

  /// True if the name is that of a table of SQLite's own, such as `sqlite_stat1`: no other may begin with `sqlite_`.
  package var isReservedBySQLite: Bool { folded.utf8.starts(with: "sqlite_".utf8) }

  /// Why no diff may contain a table with this name; nil when one may.
  ///
  /// The tables of SQLite and Buckia, and the names of pragma functions, are reserved.
  public var refusal: String? {
    for prefix in ["sqlite_", "buckia_", "pragma_"] where folded.utf8.starts(with: prefix.utf8) {
      return "names that begin with \(prefix) are reserved"
    }
    if text.isEmpty { return "the name is empty" }
    if text.utf8.contains(0) { return "the name contains a NUL" }
    return nil
  }
}

/// The type affinity of a column. See <https://sqlite.org/datatype3.html#determination_of_column_affinity>.
package enum Affinity: String, Sendable {
  case integer, text, blob, real, numeric

  /// Determines the affinity of a declared type by the five rules of SQLite.
  ///
  /// - Parameter declaredType: The type as it is written in the CREATE TABLE statement; empty for none.
  package init(declaredType: String) {
    let type = declaredType.utf8.map(ASCIIName.folded)
    func contains(_ words: StaticString...) -> Bool { words.contains { Self.occurs($0, in: type) } }
    if contains("int") {
      self = .integer
    } else if contains("char", "clob", "text") {
      self = .text
    } else if type.isEmpty || contains("blob") {
      self = .blob
    } else if contains("real", "floa", "doub") {
      self = .real
    } else {
      self = .numeric
    }
  }

  /// True if a word occurs in a type. Compares bytes, because a search in a `String` takes a hundred times as long.
  private static func occurs(_ word: StaticString, in type: [UInt8]) -> Bool {
    let count = word.utf8CodeUnitCount
    // Sound: a static string lives as long as the program.
    let bytes = UnsafeBufferPointer(start: word.utf8Start, count: count)
    return type.indices.dropLast(count - 1).contains { start in
      bytes.indices.allSatisfy { type[start + $0] == bytes[$0] }
    }
  }
}

/// Finds the columns of a table by name, in constant time for tables with many columns.
package struct ColumnLookup: Sendable {
  /// The number of columns, and of lookups, up to which linear searches are faster than making a dictionary.
  private static let listLimit = 16

  private var names: [String]
  /// The indexes of the columns by the bytes of their names in lower case; empty where it is not worth making them.
  private var indexes: [[UInt8]: Int] = [:]
  private let lookups: Int

  /// Creates a lookup for the columns of a table.
  ///
  /// - Parameters:
  ///   - columns: The columns.
  ///   - lookups: How many names will be looked for, if that is known.
  package init(_ columns: [ColumnDefinition], for lookups: Int = .max) {
    names = columns.map(\.name)
    self.lookups = lookups
    if isWorthIndexing { addAll() }
  }

  private var isWorthIndexing: Bool { min(names.count, lookups) > Self.listLimit }

  /// Appends a column.
  package mutating func append(_ name: String) {
    names.append(name)
    if !indexes.isEmpty {
      add(names.count - 1)
    } else if isWorthIndexing {
      addAll()
    }
  }

  private mutating func addAll() { for index in names.indices { add(index) } }

  private mutating func add(_ index: Int) {
    let key = names[index].utf8.map(ASCIIName.folded)
    if indexes[key] == nil { indexes[key] = index }
  }

  /// The index of the column with a name, in any case; the first of several.
  package subscript(name: String) -> Int? {
    if indexes.isEmpty { return names.firstIndex { ASCIIName.matches($0, name) } }
    return indexes[name.utf8.map(ASCIIName.folded)]
  }
}

extension TableName: Codable {
  /// Reads the name as written.
  public init(from decoder: any Decoder) throws { self.init(try decoder.singleValueContainer().decode(String.self)) }

  /// Writes the name as written.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
