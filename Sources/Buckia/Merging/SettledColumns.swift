import SQLiteConnections

/// The columns of a merge that no person edits or has to decide: counts that triggers maintain are added up, of times
/// that triggers record the later one stays, and ignored columns keep their local values. Of columns that were dropped here, only values
/// count: neither their deletion nor that of their rows.
struct SettledColumns {
  private enum Rule {
    case ignored, count, time, dropped
  }

  private struct Table {
    /// By the places in the changes.
    var rules: [Int: Rule]
    let keys: [Int]
    /// The columns with rules, in their order, of the row here that has a key.
    let query: PreparedStatement
  }

  private var tables: [TableName: Table] = [:]

  /// - Parameters:
  ///   - definitions: The changed tables of the other side.
  ///   - incoming: The other side.
  ///   - options: How to merge.
  ///   - schema: The schema here.
  ///   - renames: The renames of both sides.
  ///   - connection: The database here.
  init(
    of definitions: [TableDefinition], _ incoming: IncomingDatabase, _ options: MergeOptions, _ schema: SchemaReader,
    _ renames: ColumnRenames, on connection: borrowing SQLiteConnection
  ) throws {
    let kept = incoming.hasBase ? try schema.columnsKeptByTriggers() : []
    let base = try SchemaReader(incoming.base.connection)
    for definition in definitions where definition.module == nil {
      let name = TableName(definition.name)
      let offset = definition.isKeyedByRowID ? 1 : 0
      var rules: [Int: Rule] = [:]
      func set(_ rule: Rule, _ column: String) {
        guard let place = definition.column(named: column), !definition.primaryKey.contains(place) else { return }
        rules[place + offset] = rule
      }
      for column in kept where TableName(column.table) == name { set(column.isTime ? .time : .count, column.column) }
      if name == TableName("gpkg_contents") { set(.time, "last_change") }
      for column in options.ignoredColumns[name] ?? [] { set(.ignored, column) }
      guard let local = try schema.table(named: name), local.hasSameKey(as: definition),
        !local.isKeyedByRowID || local.rowIDName != nil
      else { continue }
      let lookup = ColumnLookup(local.columns)
      func stored(_ place: Int) -> String? {
        let column = definition.columns[place - offset].name
        let names = [column] + renames.otherNames(of: column, in: name)
        return names.lazy.compactMap { lookup[$0] }.first.map { SQLText.identifier(local.columns[$0].name) }
      }
      rules = rules.filter { stored($0.key) != nil }
      for (place, column) in definition.columns.enumerated() where stored(place + offset) == nil {
        if try base.table(named: name)?.column(named: column.name) != nil { set(.dropped, column.name) }
      }
      if rules.isEmpty { continue }
      let results = try rules.keys.sorted().map { place in
        try stored(place)
          ?? AddedColumnValue.literal(of: definition.columns[place - offset], isStrict: definition.isStrict)
      }
      let condition = local.keySQL.indices.map { "\(local.keySQL[$0]) = ?\($0 + 1)" }.joined(separator: " AND ")
      let query = try connection.prepare(
        "SELECT \(results.joined(separator: ", ")) FROM main.\(name.quoted) WHERE \(condition)", isPersistent: true)
      tables[name] = Table(rules: rules, keys: definition.keyIndexes, query: PreparedStatement(query))
    }
  }

  /// True if the changes have no such columns.
  var isEmpty: Bool { tables.isEmpty }

  /// Writes the changes such that no such column is a conflict.
  func settle(_ changeset: TemporaryBuffer) throws -> TemporaryBuffer {
    let output = changeset.makeEmpty()
    var writer = ChangesetWriter()
    var last: ChangesetTable?
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      guard let header = reader.table else { return }
      var (old, new) = (reader.old.map(Value.slice), reader.new.map(Value.slice))
      if let table = tables[TableName(header.name)] {
        try settle(&old, &new, change.operation, table, bytes)
        if change.operation == .update, new.allSatisfy(\.isUndefined) { return }
      }
      if last != header { writer.beginTable(header) }
      last = header
      writer.beginChange(change.operation, isIndirect: change.isIndirect)
      if change.operation != .insert { for value in old { value.write(to: &writer, bytes) } }
      if change.operation != .delete { for value in new { value.write(to: &writer, bytes) } }
      try output.write(writer.bytes)
      writer.removeAll()
    }
    return output
  }

  private func settle(
    _ old: inout [Value], _ new: inout [Value], _ operation: ChangeOperation, _ table: Table, _ bytes: RawSpan
  ) throws {
    let query = table.query
    defer { query.statement.reset() }
    for (index, place) in table.keys.enumerated() {
      guard case .slice(let key) = operation == .insert ? new[place] : old[place] else { return }
      try query.statement.bind(key, in: bytes, at: index)
    }
    guard try query.statement.step() else { return }
    for (index, (place, rule)) in table.rules.sorted(by: { $0.key < $1.key }).enumerated() {
      let here = Value(index, of: query.statement)
      switch operation {
      case .delete: old[place] = here
      case .insert:
        if rule != .count, rule != .dropped {
          new[place] = here.isLater(than: new[place], bytes) || rule == .ignored ? here : new[place]
        }
      case .update where !new[place].isUndefined:
        if rule == .dropped {
          if new[place].isNull { (old[place], new[place]) = (.undefined, .undefined) }
        } else if rule == .count {
          guard let mine = here.integer(bytes), let before = old[place].integer(bytes),
            let theirs = new[place].integer(bytes)
          else { continue }
          new[place] = .integer(mine &+ theirs &- before)
          old[place] = here
        } else if rule == .ignored || here.isLater(than: new[place], bytes) {
          (old[place], new[place]) = (.undefined, .undefined)
        } else {
          old[place] = here
        }
      case .update: break
      }
    }
  }

  /// A value of a change, or one that takes its place.
  private enum Value {
    case slice(ValueSlice)
    case encoded([UInt8], ChangesetValue?)
    case integer(Int64)

    static let undefined = Value.slice(.undefined)

    /// A value of a row here.
    init(_ column: Int, of row: borrowing SQLiteStatement) {
      var writer = ChangesetWriter()
      writer.append(column: column, of: row)
      switch row.storageClass(at: column) {
      case .integer: self = .integer(row.integer(at: column))
      case .text: self = .encoded(writer.bytes, .text(row.text(at: column) ?? ""))
      default: self = .encoded(writer.bytes, nil)
      }
    }

    var isNull: Bool { if case .slice(let value) = self { value.kind == .null } else { false } }
    var isUndefined: Bool { if case .slice(let value) = self { value.kind == .undefined } else { false } }

    func integer(_ bytes: RawSpan) -> Int64? {
      switch self {
      case .integer(let number): number
      case .slice(let value) where value.kind == .integer: value.integer(in: bytes)
      default: nil
      }
    }

    private func text(_ bytes: RawSpan) -> String? {
      switch self {
      case .encoded(_, .text(let text)): text
      case .slice(let value) where value.kind == .text: String(decoding: bytes.array(value.payloadRange), as: UTF8.self)
      default: nil
      }
    }

    /// True if both are times in one form, and this is the later one.
    func isLater(than other: Value, _ bytes: RawSpan) -> Bool {
      if let mine = integer(bytes), let others = other.integer(bytes) { return mine > others }
      guard let mine = text(bytes), let others = other.text(bytes) else { return false }
      return others.utf8.lexicographicallyPrecedes(mine.utf8)
    }

    func write(to writer: inout ChangesetWriter, _ bytes: RawSpan) {
      switch self {
      case .slice(let value): if value.isDefined { writer.append(value, of: bytes) } else { writer.appendUndefined() }
      case .encoded(let encoded, _): writer.append(encoded: encoded)
      case .integer(let number): writer.append(integer: number)
      }
    }
  }
}
