import ReplicationTestSupport
import SQLiteSchemas

/// The expected result of applying the author's three changes to a receiver of another form, derived from the facts
/// about both forms: row 5 is inserted, row 2 gets another value in one column, row 3 is deleted.
struct SchemaExpectation {
  /// The plan: actions with their column, sorted. Empty if the diff is refused.
  private(set) var plan: [String] = []
  /// The code of the refusal; nil if the diff is applied or held.
  private(set) var refusal: String?
  /// The number of held tables and columns.
  private(set) var heldParts = 0
  /// The number of changes in conflict.
  private(set) var conflicts = 0
  /// All rows afterwards, by the receiver's columns at that time; nil if the name is not a table.
  private(set) var rows: [[SchemaVariant.Value]]?
  /// The receiver's columns afterwards.
  private(set) var columns: [SchemaVariant.Column] = []

  private let incoming: SchemaVariant
  private let local: SchemaVariant
  private let mode: SchemaMode
  /// True if row 5 has a value that the receiver would alter or refuse.
  private var isInsertRefused = false
  /// True if row 5 waits for the row that it refers to.
  private var isInsertParked = false
  /// True if rows 2 and 3 are looked up by keys of another type, and so not found.
  private var isKeyOfAnotherType = false
  /// Columns of the diff without a counterpart at the receiver.
  private var homeless: Set<String> = []

  init(_ incoming: SchemaVariant, into local: SchemaVariant, mode: SchemaMode) {
    self.incoming = incoming
    self.local = local
    self.mode = mode
    columns = local.stored
    judge()
    if refusal != nil {
      plan = []
      columns = local.stored
    }
    plan.sort()
    if local.kind == .table || refusal == nil && heldParts == 0 { rows = finalRows() }
  }

  private mutating func note(_ action: String, _ column: String? = nil) {
    plan.append(column.map { "\(action) \($0.lowercased())" } ?? action)
  }

  private mutating func judge() {
    switch local.kind {
    case .missing: return judgeMissing()
    case .other:
      if mode == .hold { return holdAll() }
      refusal = "refused-table"
      return
    case .table: break
    }
    guard incoming.key.map({ $0.lowercased() }) == local.key.map({ $0.lowercased() }) else {
      return mode == .hold ? holdAll() : refuse("key-differs")
    }
    if mode == .exact, !isSame { return refuse("schema-differs") }
    for column in incoming.stored where heldParts < 100 { judge(column) }
    guard refusal == nil, heldParts < 100 else { return }
    noteTheRest()
  }

  private mutating func refuse(_ code: String) { if refusal == nil { refusal = code } }

  private mutating func holdAll() {
    plan = ["hold"]
    heldParts = 100
    homeless = Set(incoming.stored.map { $0.name.lowercased() })
  }

  private mutating func judgeMissing() {
    switch mode {
    case .exact: refuse("schema-differs")
    case .hold: holdAll()
    case .additive, .adopt:
      note("create")
      for column in incoming.columns where column.isGenerated { note("leave-out", column.name) }
      if incoming.columns.contains(where: \.isReference) { note("leave-out") }
      columns = incoming.stored
    }
  }

  /// True if no replicated part differs.
  private var isSame: Bool {
    func facts(_ variant: SchemaVariant) -> [String] {
      variant.columns.map { column in
        [
          column.name, column.type, "\(column.value ?? -1)", "\(column.isNotNull)", "\(column.isGenerated)",
          "\(column.isReference)", "\(column.isUnique)", column.clause,
        ].joined(separator: "|").lowercased()
      } + ["\(variant.isStrict)\(variant.isWithoutRowID)\(variant.isAutoIncrement)"]
    }
    return facts(incoming) == facts(local)
  }

  private mutating func judge(_ column: SchemaVariant.Column) {
    guard let found = local.column(column.name) else {
      if mode == .hold { return hold(column) }
      note("add", column.name)
      if column.isNotNull, column.value == nil { note("leave-out", column.name) }
      if column.isReference { note("leave-out") }
      if column.isUnique { note("leave-out") }
      columns.append(column)
      return
    }
    if found.isGenerated { return mode == .hold ? hold(column) : refuse("columns-differ") }
    switch Self.fit(column.type.uppercased(), found.type.uppercased()) {
    case .same: break
    case .always: note("convert", column.name)
    case .byValue:
      let value = incoming.value(of: column, row: 5)
      let alters = !value.stored(as: found.type).isEqual(to: value)
      if alters, mode == .hold { return hold(column) }
      note("convert", column.name)
      if alters { isInsertRefused = true }
    case .never:
      if mode == .hold { return hold(column) }
      note("convert", column.name)
      let value = incoming.value(of: column, row: 5)
      // Text is never less than the number that CHECK compares with, nor a key of the referenced table.
      let isChecked = column.name.lowercased() == "b" && !local.constraint.isEmpty
      if !value.stored(as: found.type).isEqual(to: value) || isRowID(found) || isChecked { isInsertRefused = true }
      if found.isReference {
        conflicts += 1
        isInsertParked = true
      }
      // No key of one side is a key of the other.
      if isKey(column) { isKeyOfAnotherType = true }
    }
  }

  private func isKey(_ column: SchemaVariant.Column) -> Bool {
    incoming.key.contains { $0.lowercased() == column.name.lowercased() }
  }

  /// True if only integers can be stored in a column of the receiver.
  private func isRowID(_ column: SchemaVariant.Column) -> Bool {
    local.isStrict
      || local.key.map { $0.lowercased() } == [column.name.lowercased()] && column.type.uppercased() == "INTEGER"
        && !local.isWithoutRowID
  }

  private mutating func hold(_ column: SchemaVariant.Column) {
    if isKey(column) { return holdAll() }
    guard heldParts < 100 else { return }
    note("hold", column.name)
    heldParts += 1
    homeless.insert(column.name.lowercased())
  }

  private enum Fit { case same, always, byValue, never }

  /// How values of one type fit into a column of another.
  private static func fit(_ incoming: String, _ local: String) -> Fit {
    let integers: Set<String> = ["INTEGER", "INT", "BIGINT"]
    let (theirs, ours) = (
      integers.contains(incoming) ? "INTEGER" : incoming, integers.contains(local) ? "INTEGER" : local
    )
    if theirs == ours { return .same }
    switch (theirs, ours) {
    case (_, ""), (_, "BLOB"), ("INTEGER", "NUMERIC"), ("NUMERIC", "INTEGER"), ("REAL", "INTEGER"), ("REAL", "NUMERIC"):
      return .always
    case ("TEXT", "INTEGER"), ("TEXT", "REAL"), ("INTEGER", "TEXT"), ("REAL", "TEXT"): return .never
    default: return .byValue
    }
  }

  private mutating func noteTheRest() {
    let order = incoming.stored.compactMap { column in
      homeless.contains(column.name.lowercased())
        ? nil : local.stored.firstIndex { $0.name.lowercased() == column.name.lowercased() }
    }
    if order != order.sorted() { note("remap") }
    for column in local.stored where incoming.column(column.name).map(\.isGenerated) ?? true {
      note("keep", column.name)
    }
    if local.isStrict, !incoming.isStrict { note("keep") }
    if incoming.isStrict, !local.isStrict { note("leave-out") }
    if incoming.isWithoutRowID != local.isWithoutRowID { note("leave-out") }
    for column in incoming.columns where column.isGenerated && local.column(column.name) == nil {
      note("leave-out", column.name)
    }
  }

  // MARK: Rows

  private mutating func finalRows() -> [[SchemaVariant.Value]] {
    let isUntouched = refusal != nil || heldParts >= 100
    guard local.kind == .table else {
      if isUntouched { return [] }
      // There is no row to update, which is a conflict, and none to delete, which is not.
      conflicts = 1
      return [insertedRow()]
    }
    var rows = (1...4).map { row in
      columns.map { column in local.column(column.name).map { local.value(of: $0, row: row) } ?? added(column) }
    }
    if isUntouched { return rows }
    if isKeyOfAnotherType {
      conflicts += 1
    } else if let changed = incoming.changedColumn, !isHomeless(changed), let place = place(of: changed) {
      rows[1][place] = incoming.changedValue.stored(as: columns[place].type)
    }
    // A DELETE compares every value that its author saw and that has a column here.
    let isAsSeen = incoming.stored.allSatisfy { column in
      guard !isHomeless(column), let place = place(of: column) else { return true }
      return incoming.value(of: column, row: 3).isEqual(to: rows[2][place])
    }
    if !isKeyOfAnotherType {
      if isAsSeen { rows.remove(at: 2) } else { conflicts += 1 }
    }
    let needsMore = columns.contains { column in
      local.column(column.name) != nil && column.isNotNull && column.value == nil
        && incoming.column(column.name).map { $0.isGenerated || isHomeless($0) } ?? true
    }
    if needsMore || isInsertRefused {
      // A left-out change is not held either, and only the UPDATE had unknown columns.
      conflicts += 1
      heldParts = incoming.changedColumn.map(isHomeless) == true ? heldParts : 0
    } else if !isInsertParked {
      rows.append(insertedRow())
    }
    return rows
  }

  private func isHomeless(_ column: SchemaVariant.Column) -> Bool { homeless.contains(column.name.lowercased()) }

  private func place(of column: SchemaVariant.Column) -> Int? {
    columns.firstIndex { $0.name.lowercased() == column.name.lowercased() }
  }

  /// The value that existing rows get in an added column.
  private func added(_ column: SchemaVariant.Column) -> SchemaVariant.Value {
    column.value.map { SchemaVariant.Value.integer($0) } ?? .null
  }

  private func insertedRow() -> [SchemaVariant.Value] {
    columns.map { column in
      guard let theirs = incoming.column(column.name), !theirs.isGenerated, !isHomeless(theirs) else {
        return added(column)
      }
      return incoming.value(of: theirs, row: 5).stored(as: column.type)
    }
  }
}
