import BuckiaBytes

/// Finds for each column of an incoming table its place in the local table of that name.
struct TableFit {
  /// How many columns that are only here are named, as many as one diff may add: a table has up to 2,000, and thousands of files
  /// may come for it.
  private static let keptNoteLimit = TableDefinition.newColumnLimit

  private let incoming: TableDefinition
  private let mode: SchemaMode
  /// Columns that are to be held although there is a place for them, and why.
  private let withheld: [Int: String]
  private let renames: ColumnRenames
  private let incomingNames: ColumnLookup
  private var local: TableDefinition
  private var localNames: ColumnLookup
  private var places: [Int] = []
  private var checks: [TableMatch.Check] = []
  private var held: [(column: Int, reason: String)] = []
  /// The local names of the columns that are called otherwise here.
  private var localNamesOfRenamed: [Int: String] = [:]
  /// The columns that have to be added.
  private(set) var steps: [SchemaStep] = []
  /// What the plan says about the table.
  private(set) var notes: [SchemaNote] = []

  /// - Parameters:
  ///   - incoming: The table of the diff.
  ///   - existing: The table here.
  ///   - mode: What may be done about a difference.
  ///   - withheld: Columns that are to be held whatever their place, in the mode `hold`.
  ///   - renames: The renames that are known.
  /// - Throws: `ReplicationError` when the two do not fit.
  init(
    _ incoming: TableDefinition, into existing: TableDefinition, mode: SchemaMode, withheld: [Int: String] = [:],
    _ renames: ColumnRenames = ColumnRenames()
  ) throws {
    self.incoming = incoming
    self.mode = mode
    self.withheld = withheld
    self.renames = renames
    local = existing
    incomingNames = ColumnLookup(incoming.columns)
    localNames = ColumnLookup(existing.columns, for: incoming.columns.count)
    try requireSameKey()
    if mode == .exact, let difference = incoming.difference(from: local) {
      throw ReplicationError(
        .schemaDiffers,
        "table \"\(local.name)\" is defined differently here, and the schema mode `exact` allows no difference: \(difference)",
        table: local.name)
    }
    try placeColumns()
    noteOrder(existing)
    noteWhatIsOnlyHere(existing)
    noteWhatIsOnlyThere(existing)
  }

  /// The match, once everything has a place.
  var match: TableMatch { TableMatch(local: local, columns: places, checkedValues: checks) }

  /// What has none. The columns that have a place bear their local names: a rename may be unknown when the rest gets its place.
  var heldTable: HeldTable? {
    guard let first = held.first else { return nil }
    var definition = incoming
    for (index, name) in localNamesOfRenamed { definition.columns[index].name = name }
    let names = held.map { "\"\(incoming.columns[$0.column].name)\"" }.joined(separator: ", ")
    return HeldTable(
      held.map(\.column), of: definition,
      because: held.count == 1 ? "column \(names) \(first.reason)" : "columns \(names)")
  }

  private func error(_ code: BuckiaErrorCode, _ message: String, _ column: ColumnDefinition? = nil)
    -> ReplicationError
  {
    ReplicationError(code, message, table: local.name, column: column?.name)
  }

  private func requireSameKey() throws {
    let found = incoming.primaryKey.map { find(incoming.columns[$0]) }
    guard found == local.primaryKey.map({ Optional($0) }) else {
      let incomingKey = incoming.primaryKey.map { incoming.columns[$0].name }
      let localKey = local.primaryKey.map { local.columns[$0].name }
      throw error(
        .keyDiffers,
        "table \"\(local.name)\" has another primary key: \(Self.list(incomingKey)) in the diff, \(Self.list(localKey)) here"
      )
    }
    if local.isKeyedByRowID, local.rowIDName == nil {
      throw error(.keyDiffers, "table \"\(local.name)\" has no primary key, and its columns hide the rowid")
    }
  }

  private static func list(_ key: [String]) -> String { key.isEmpty ? "none" : "(\(key.joined(separator: ", ")))" }

  // MARK: Columns

  private mutating func placeColumns() throws {
    let offset = incoming.isKeyedByRowID ? 1 : 0
    if offset == 1 { places.append(0) }
    var taken: Set<Int> = []
    for (index, column) in incoming.columns.enumerated() {
      if let reason = withheld[index] {
        try hold(index, reason)
      } else if let found = find(column) {
        guard taken.insert(found).inserted else {
          throw error(
            .columnsDiffer, "the definition of table \"\(local.name)\" names column \"\(column.name)\" twice", column)
        }
        try place(index, at: found, offset)
      } else if local.generated.contains(where: { ASCIIName.matches($0.name, column.name) }) {
        guard mode == .hold else {
          throw error(
            .columnsDiffer, "column \"\(local.name).\(column.name)\" is a generated column here and cannot be written",
            column)
        }
        try hold(index, "is a generated column here")
      } else if mode == .hold {
        try hold(index, "is missing here")
      } else {
        try add(column)
        taken.insert(local.columns.count)
        places.append(local.columns.count + offset)
        local.columns.append(column)
        localNames.append(column.name)
      }
    }
  }

  /// The local column of that name, or of another name that this one has had or got.
  ///
  /// A name that the author uses for a column of its own is never such another name.
  private func find(_ column: ColumnDefinition) -> Int? {
    if let found = localNames[column.name] { return found }
    let names = renames.otherNames(of: column.name, in: TableName(incoming.name))
    return names.lazy.filter { incomingNames[$0] == nil }.compactMap { localNames[$0] }.first
  }

  private mutating func place(_ index: Int, at found: Int, _ offset: Int) throws {
    let (theirs, ours) = (incoming.columns[index], local.columns[found])
    if !ASCIIName.matches(theirs.name, ours.name) {
      note(.rename, theirs, "it is called \(ours.name) here")
      localNamesOfRenamed[index] = ours.name
    }
    let types = "\(theirs.typeName) in the diff, \(ours.typeName) here"
    let affinity = local.affinity(at: found)
    switch TypeCompatibility(incoming: incoming.affinity(at: index), local: affinity) {
    case .safe:
      if incoming.affinity(at: index) != affinity { note(.convert, theirs, "\(types); every value stays what it is") }
    case .contradictory where mode == .hold: return try hold(index, "has an incompatible type: \(types)")
    case .dependsOnValues, .contradictory:
      checks.append(TableMatch.Check(column: index + offset, place: found + offset, affinity: affinity))
      let otherwise = mode == .hold ? "is held" : "is a conflict"
      note(.convert, theirs, "\(types); a value that would not stay what it is \(otherwise)")
    }
    places.append(found + offset)
  }

  private mutating func hold(_ index: Int, _ reason: String) throws {
    let column = incoming.columns[index]
    guard !incoming.primaryKey.contains(index) else {
      throw error(.keyDiffers, "column \"\(column.name)\" of the primary key \(reason)", column)
    }
    held.append((index, reason))
    note(.hold, column, "it \(reason)")
  }

  private mutating func add(_ column: ColumnDefinition) throws {
    if let refusal = column.creationRefusal {
      throw error(.refusedDefinition, "column \"\(local.name).\(column.name)\" may not be added: \(refusal)", column)
    }
    guard steps.count < TableDefinition.newColumnLimit else {
      throw error(
        .refusedDefinition,
        "it would add more than \(TableDefinition.newColumnLimit) columns to table \"\(local.name)\"")
    }
    steps.append(.addColumn(column, table: TableName(local.name)))
    note(.add, column, column.typeName)
    if column.isNotNull, column.addedValue == nil {
      note(.leaveOut, column, "NOT NULL, which SQLite adds only with a default that is no NULL")
    }
    if let value = column.defaultValue, value.isTimeDependent {
      note(.leaveOut, column, "the default \(value.sql), which SQLite does not add to a table that is there")
    }
  }

  // MARK: Notes

  private mutating func note(_ action: SchemaNote.Action, _ column: ColumnDefinition?, _ detail: String) {
    notes.append(SchemaNote(action, incoming.name, column?.name, detail))
  }

  private mutating func noteOrder(_ existing: TableDefinition) {
    let count = existing.columns.count + (existing.isKeyedByRowID ? 1 : 0)
    let known = places.filter { $0 < count }
    if known != known.sorted() { note(.remap, nil, "the columns are in another order here") }
  }

  private mutating func noteWhatIsOnlyHere(_ existing: TableDefinition) {
    let offset = incoming.isKeyedByRowID ? 1 : 0
    let filled = Set(places)
    var kept = existing.columns.indices.filter { index in
      incomingNames[existing.columns[index].name] == nil && !filled.contains(index + offset)
    }
    let unnamed = kept.count - Self.keptNoteLimit
    // Those that keep new rows out are named first.
    if unnamed > 0 {
      kept = kept.filter { existing.columns[$0].needsValue } + kept.filter { !existing.columns[$0].needsValue }
    }
    for index in kept.prefix(Self.keptNoteLimit) {
      let column = existing.columns[index]
      note(
        .keep, column,
        column.needsValue ? "it is only here, and NOT NULL without a default: it refuses new rows" : "it is only here")
    }
    if unnamed > 0 { note(.keep, nil, "\(unnamed) more column\(unnamed == 1 ? " is" : "s are") only here") }
    if existing.isStrict, !incoming.isStrict {
      note(.keep, nil, "it is STRICT here, and refuses values of other types")
    }
  }

  /// What is part of the incoming definition and is not made here.
  private mutating func noteWhatIsOnlyThere(_ existing: TableDefinition) {
    if incoming.isStrict, !existing.isStrict {
      note(.leaveOut, nil, "STRICT: an existing table does not become STRICT")
    }
    if incoming.isWithoutRowID != existing.isWithoutRowID {
      note(
        .leaveOut, nil,
        "WITHOUT ROWID is \(incoming.isWithoutRowID ? "in the diff" : "here") only: an existing table keeps its kind"
      )
    }
    for column in incoming.generated
    where localNames[column.name] == nil
      && !existing.generated.contains(where: { ASCIIName.matches($0.name, column.name) })
    {
      notes.append(SchemaNote(leavingOut: column, of: incoming))
    }
    guard mode == .additive else { return }
    let added = Set(
      incoming.columns.indices.filter { (localNames[incoming.columns[$0].name] ?? .max) >= existing.columns.count })
    for unique in incoming.unique where !added.isDisjoint(with: unique) {
      let names = unique.map { incoming.columns[$0].name }.joined(separator: ", ")
      note(.leaveOut, nil, "UNIQUE (\(names)), which SQLite does not add to a table that is there")
    }
    for key in incoming.foreignKeys
    where key.columns.contains(where: { name in added.contains { ASCIIName.matches(incoming.columns[$0].name, name) } })
    {
      note(
        .leaveOut, nil,
        "FOREIGN KEY (\(key.columns.joined(separator: ", "))) REFERENCES \(key.parent): made only along with a new table"
      )
    }
  }
}

extension ColumnDefinition {
  /// The column's type, for people.
  fileprivate var typeName: String { declaredType.isEmpty ? "no type" : declaredType }

  /// What tells an incoming column apart from the local one of its name, for people; nil when both come to the same.
  fileprivate func difference(from local: ColumnDefinition) -> String? {
    if !ASCIIName.matches(declaredType, local.declaredType) {
      return "type \(typeName) in the diff and \(local.typeName) here"
    }
    if isNotNull != local.isNotNull { return "NOT NULL \(isNotNull ? "in the diff" : "here") only" }
    if !ASCIIName.matches(collation, local.collation) {
      return "the collating sequence \(collation) in the diff and \(local.collation) here"
    }
    // An expression does not travel, so whether the author's column has the same is unknown.
    if defaultValue != local.defaultValue, !local.hasExpressionDefault {
      return
        "the default \(defaultValue?.sql ?? "NULL") in the diff and \(local.defaultValue?.sql ?? "NULL") here"
    }
    return nil
  }

  /// True if a new row must have a value for it.
  fileprivate var needsValue: Bool {
    isNotNull && (defaultValue?.isNull ?? true) && !hasExpressionDefault
      && !ASCIIName.matches(declaredType, "INTEGER")
  }
}

extension TableDefinition {
  /// What tells an incoming definition of a table apart from the local one, for people; nil when both come to the same.
  ///
  /// Names and types are compared without regard to case, as SQLite does.
  fileprivate func difference(from local: TableDefinition) -> String? {
    let incoming = self
    let (theirs, ours) = (incoming.columns.map(\.name), local.columns.map(\.name))
    if !theirs.map(ASCIIName.folded).elementsEqual(ours.map(ASCIIName.folded), by: ==) {
      if let name = theirs.first(where: { local.column(named: $0) == nil }) {
        return "column \"\(name)\" is missing here"
      }
      if let name = ours.first(where: { incoming.column(named: $0) == nil }) {
        return "column \"\(name)\" is only here"
      }
      return "the columns are in another order"
    }
    for (their, our) in zip(incoming.columns, local.columns) {
      if let difference = their.difference(from: our) { return "column \"\(our.name)\" has \(difference)" }
    }
    func only(_ isTheirs: Bool) -> String { isTheirs ? "in the diff only" : "here only" }
    if incoming.isWithoutRowID != local.isWithoutRowID { return "it is \(only(incoming.isWithoutRowID)) WITHOUT ROWID" }
    if incoming.isStrict != local.isStrict { return "it is \(only(incoming.isStrict)) STRICT" }
    if incoming.isAutoIncrement != local.isAutoIncrement {
      return "its key is \(only(incoming.isAutoIncrement)) AUTOINCREMENT"
    }
    if Set(incoming.generated.map(Self.shape)) != Set(local.generated.map(Self.shape)) {
      return "other columns are generated"
    }
    if Set(incoming.unique.map(incoming.shape)) != Set(local.unique.map(local.shape)) {
      return "other columns are UNIQUE"
    }
    if Set(incoming.foreignKeys.map(Self.shape)) != Set(local.foreignKeys.map(Self.shape)) {
      return "the foreign keys differ"
    }
    return nil
  }

  private static func shape(_ column: GeneratedColumn) -> [String] {
    [ASCIIName.folded(column.name), column.isStored ? "stored" : "virtual"]
  }

  private func shape(_ unique: [Int]) -> Set<String> { Set(unique.map { ASCIIName.folded(columns[$0].name) }) }

  private static func shape(_ key: ForeignKey) -> [String] {
    key.columns.map(ASCIIName.folded) + ["references", ASCIIName.folded(key.parent)]
      + key.parentColumns.map(ASCIIName.folded) + [key.onUpdate.rawValue, key.onDelete.rawValue]
  }
}
