import BuckiaBytes

/// New keys for local rows whose integer keys the incoming changes have given to other rows.
///
/// Which rows these are is found in one pass. Rows that both sides have inserted alike are one row, but not if they refer to a row that gets
/// a new key: they are followed from parent to child, along chains and cycles of foreign keys.
struct KeyRemapping {
  /// A row, by the number of its table and its key.
  private struct Row: Hashable {
    let table: Int
    let key: Int64
  }

  /// A column that refers to the integer key of a table.
  private typealias Link = (column: Int, parent: Int)

  private let sides: RebaseSides
  private let rules: [RebaseTable?]
  /// For each table the column whose keys can be given again; nil for none.
  private let keyColumns: [Int?]
  private var links: [[Link]]
  /// The new keys.
  private var newKeys: [Row: Int64] = [:]
  /// The rows with new keys, in the order in which they were found.
  private var rows: [Row] = []
  /// The greatest key in use, by table.
  private var greatest: [Int64]
  /// For each table the keys of local rows that are known to be other rows.
  private let matches: [[Int64: Int64]]

  /// Finds out which rows need new keys.
  init(
    _ sides: RebaseSides, definitions: [RebaseTable], matching matches: [String: [Int64: Int64]],
    limits: ChangeSorter.Limits, poll: () throws -> Void
  ) throws {
    self.sides = sides
    self.matches = sides.tables.map { table in
      matches.first { ASCIIName.matches($0.key, table.table.name) }?.value ?? [:]
    }
    rules = sides.tables.map { definitions.table(named: $0.table.name) }
    let rules = rules
    let integerKeys = sides.tables.indices.map { rules[$0]?.integerKey }
    links = sides.tables.indices.map { child -> [Link] in
      (rules[child]?.references ?? []).flatMap { reference -> [Link] in
        guard let parent = sides.tables.firstIndex(where: { ASCIIName.matches($0.table.name, reference.parent) })
        else { return [] }
        return zip(reference.columns, reference.parentColumns).compactMap { column, parentColumn in
          parentColumn == integerKeys[parent] ? (column, parent) : nil
        }
      }
    }
    // A key that refers to another row is given out where that row is.
    let direct = links
    keyColumns = integerKeys.enumerated().map { table, column in
      direct[table].contains { $0.column == column } ? nil : column
    }
    links = direct.map { $0.map { ($0.column, Self.origin(of: $0.parent, integerKeys, direct)) } }
    greatest = rules.map { $0?.greatestKey ?? 0 }
    try find(limits: limits, poll: poll)
  }

  /// The table whose keys those of another are, from foreign key to foreign key.
  private static func origin(of table: Int, _ integerKeys: [Int?], _ links: [[Link]]) -> Int {
    var origin = table
    for _ in links.indices {
      guard let link = links[origin].first(where: { $0.column == integerKeys[origin] }) else { break }
      origin = link.parent
    }
    return origin
  }

  private mutating func find(limits: ChangeSorter.Limits, poll: () throws -> Void) throws {
    var equal: Set<Row> = []
    var children: [Row: [Row]] = [:]
    for (number, table) in sides.tables.enumerated() {
      guard let column = keyColumns[number] else { continue }
      let groups = try RowGroups(
        table.table, rules[number], local: table.local, incoming: table.incoming, limits: limits, poll: poll)
      try groups.forEach(poll: poll) { group, bytes in
        for sided in group.local + group.incoming {
          let change = sided.change
          let key = change.operation == .insert ? change.new[column] : change.old[column]
          if key.kind == .integer { greatest[number] = max(greatest[number], key.integer(in: bytes)) }
        }
        guard let local = RowEdit(group.local.map(\.change), in: table.table), local.old == nil, let mine = local.new,
          mine[column].kind == .integer
        else { return }
        let row = Row(table: number, key: mine[column].integer(in: bytes))
        if let same = matches[number][row.key] {
          newKeys[row] = same
          return rows.append(row)
        }
        guard let incoming = RowEdit(group.incoming.map(\.change), in: table.table), incoming.old == nil,
          let theirs = incoming.new
        else { return }
        guard mine.indices.allSatisfy({ mine[$0].isIdentical(to: theirs[$0], in: bytes, otherIn: bytes) }) else {
          return rows.append(row)
        }
        for link in links[number] {
          guard let key = Self.key(mine[link.column], in: bytes) else { continue }
          equal.insert(row)
          children[Row(table: link.parent, key: key), default: []].append(row)
        }
      }
    }
    var next = 0
    while next < rows.count {
      for child in children[rows[next]] ?? [] where equal.remove(child) != nil { rows.append(child) }
      next += 1
    }
    rows = rows.filter { row in
      if newKeys[row] != nil { return true }
      // Where no greater key is left, the row keeps the one it has, and is a conflict.
      guard greatest[row.table] < .max else { return false }
      greatest[row.table] += 1
      newKeys[row] = greatest[row.table]
      return true
    }
  }

  /// The key that a value refers to; nil when it is none.
  private static func key(_ value: ValueSlice, in bytes: RawSpan) -> Int64? {
    switch value.kind {
    case .integer: value.integer(in: bytes)
    case .real: Int64(exactly: value.real(in: bytes))
    case .text: Int64(String(decoding: bytes.array(value.payloadRange), as: UTF8.self))
    default: nil
    }
  }

  /// The rows with new keys.
  var remapped: [RemappedKey] {
    rows.compactMap { row in
      newKeys[row].map { RemappedKey(table: sides.tables[row.table].table.name, key: row.key, newKey: $0) }
    }
  }

  // MARK: The changes with the new keys

  /// Writes the local changes with the new keys in the place of the old ones, in the rows themselves and where others refer to them.
  func write(to output: TemporaryBuffer, poll: () throws -> Void) throws {
    for (number, table) in sides.tables.enumerated() where !table.local.sections.isEmpty {
      try output.write(table.header)
      var reader = ChangesetReader(at: 0, in: table.table)
      var writer = ChangesetWriter()
      let local = table.local
      try local.changeset.forEachChange(in: local.sections, of: table.table, poll: poll) { place, _, bytes in
        writer.removeAll()
        reader.move(to: place.start)
        guard let change = try RowChange(next: &reader, in: bytes) else { return }
        write(change, of: number, to: &writer, bytes)
        try output.write(writer.bytes)
      }
    }
  }

  private func write(_ change: RowChange, of number: Int, to writer: inout ChangesetWriter, _ bytes: RawSpan) {
    let table = sides.tables[number].table
    // Old values tell of rows that were there before both sides' changes: their keys stay.
    guard change.operation != .delete, !newKeys.isEmpty else {
      return change.write(to: &writer, in: table, bytes: bytes)
    }
    writer.beginChange(change.operation, isIndirect: change.isIndirect)
    if change.operation == .update { for value in change.old { writer.append(value, of: bytes) } }
    for (column, value) in change.new.enumerated() {
      if let key = Self.key(value, in: bytes), let newKey = newKey(for: key, at: column, of: number, change.operation) {
        switch value.kind {
        case .text: writer.append(text: String(newKey))
        case .real: writer.append(real: Double(newKey))
        default: writer.append(integer: newKey)
        }
      } else {
        writer.append(value, of: bytes)
      }
    }
  }

  private func newKey(for key: Int64, at column: Int, of table: Int, _ operation: ChangeOperation) -> Int64? {
    if operation == .insert, column == keyColumns[table] { return newKeys[Row(table: table, key: key)] }
    for link in links[table] where link.column == column {
      if let newKey = newKeys[Row(table: link.parent, key: key)] { return newKey }
    }
    return nil
  }
}

extension Changesets {
  /// Gives local rows new keys if the incoming changes insert other rows with the keys that they have, and carries these through the foreign
  /// keys of the local changes.
  ///
  /// This is done for tables whose definition names an integer key that each copy of a database gives out by itself. The new keys are
  /// greater than all keys of the table in both changesets, and than the greatest known. Rows that are equal in all columns, and refer to no
  /// row that gets a new key, are one row. A key that is itself a foreign key follows its parent.
  ///
  /// - Parameters:
  ///   - local: The local changes.
  ///   - incoming: The changes that are applied before them.
  ///   - definitions: What is known of the tables.
  ///   - matches: For tables by name the keys of local rows, each with the key of the row that it is known to be.
  ///   - output: Where the local changes are added, each row changed at most once.
  ///   - limits: How much is held in memory, beside the rows that both sides have inserted.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Returns: The rows with new keys.
  /// - Throws: As ``rebased(_:onto:policy:)``.
  package static func remapKeys(
    of local: TemporaryBuffer, inUseBy incoming: TemporaryBuffer, definitions: [RebaseTable],
    matching matches: [String: [Int64: Int64]] = [:], into output: TemporaryBuffer,
    limits: ChangeSorter.Limits = ChangeSorter.Limits(), poll: () throws -> Void = {}
  ) throws -> [RemappedKey] {
    let sides = try RebaseSides(local: local, incoming: incoming, limits: limits, poll: poll)
    let remapping = try KeyRemapping(sides, definitions: definitions, matching: matches, limits: limits, poll: poll)
    try remapping.write(to: output, poll: poll)
    return remapping.remapped
  }
}

/// A local row that has got a new key, because the incoming changes insert another row with the one it had.
public struct RemappedKey: Hashable, Codable, Sendable {
  /// The table.
  public let table: String
  /// The key that the row had.
  public let key: Int64
  /// The key that it has now.
  public let newKey: Int64
}
