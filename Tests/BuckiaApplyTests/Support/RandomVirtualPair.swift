import SQLiteConnections
import TestSupport

/// An older and a newer database with random R-trees and full-text tables, made from a seed, and a third that another
/// person has changed.
struct RandomVirtualPair {
  /// A random virtual table.
  struct Table {
    let name: String
    let arguments: String
    /// The number of coordinates of an R-tree; nil for a full-text table.
    let coordinates: Int?
    let areIntegers: Bool
    /// The number of columns besides key and coordinates.
    let others: Int
    /// True if queries can contain phrases, and words that the tokenizer divides.
    let hasPhrases: Bool
    let hasWords: Bool

    var quoted: String { "\"\(name)\"" }
    var creation: String { "CREATE VIRTUAL TABLE \(quoted) USING \(arguments)" }
  }

  let folder: TemporaryFolder
  let encoding: String
  let older: String
  let newer: String
  /// The tables of the newer database.
  let tables: [Table]

  private static let words = ["red", "fox", "jumps", "über", "night", "Bell", "ringing", "rings", "x1"]

  init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    folder = try TemporaryFolder()
    older = folder.file("older")
    encoding = random.oneIn(5) ? "UTF-16le" : "UTF-8"
    let fast = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;"
    var tables = (0..<Int.random(in: 1...3, using: &random)).map { Self.table("t \($0)", &random) }
    do {
      let connection = try SQLiteConnection(opening: older, as: .create)
      try connection.execute(
        "PRAGMA encoding = '\(encoding)'; \(fast) BEGIN; CREATE TABLE plain(id INTEGER PRIMARY KEY, v)")
      for table in tables {
        try connection.execute(table.creation)
        for _ in 0..<Int.random(in: 0...30, using: &random) { try Self.edit(table, on: connection, &random) }
      }
      try connection.execute("COMMIT")
    }
    newer = try folder.copy("older", to: "newer")
    let connection = try SQLiteConnection(opening: newer, as: .readWrite)
    try connection.execute("\(fast) BEGIN; INSERT INTO plain VALUES (1, 1)")
    for table in tables where !random.oneIn(4) {
      for _ in 0..<Int.random(in: 0...20, using: &random) { try Self.edit(table, on: connection, &random) }
      // Many rows at once, so that some are inserted together.
      if random.oneIn(4) {
        for _ in 0..<60 { try Self.edit(table, on: connection, &random, among: 1_000) }
      }
    }
    if random.oneIn(3) {
      let table = Self.table("new \"one\"", &random)
      let creation = table.creation
      try connection.execute(creation)
      for _ in 0..<40 { try Self.edit(table, on: connection, &random) }
      tables.append(table)
    }
    try connection.execute("COMMIT")
    self.tables = tables
  }

  private static func table(_ name: String, _ random: inout SeededGenerator) -> Table {
    let safe = name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"")
    if random.oneIn(2) {
      let others = Int.random(in: 1...3, using: &random)
      var arguments = (0..<others).map { "\"c \($0)\"" + ($0 > 0 && random.oneIn(3) ? " UNINDEXED" : "") }
      if random.oneIn(3) { arguments.append("prefix = '\(random.pick(["2", "1 3"]))'") }
      if random.oneIn(2) {
        arguments.append(
          "tokenize = \(random.pick(["porter", "ascii", "trigram", "'unicode61 remove_diacritics 0'", "'porter ascii'"]))"
        )
      }
      let detail = random.pick(["full", "full", "column", "none"])
      if detail != "full" { arguments.append("detail = \(detail)") }
      if random.oneIn(5) { arguments.append("columnsize = 0") }
      return Table(
        name: safe, arguments: "fts5(\(arguments.joined(separator: ", ")))", coordinates: nil, areIntegers: false,
        others: others, hasPhrases: detail == "full", hasWords: !arguments.contains("tokenize = trigram"))
    }
    let coordinates = 2 * Int.random(in: 1...5, using: &random)
    let others = Int.random(in: 0...2, using: &random)
    let areIntegers = random.oneIn(3)
    let columns =
      ["id"] + (0..<coordinates).map { "\"x\($0)\"" }
      + (0..<others).map { "+\"a \($0)\" \(random.pick(["", "TEXT", "INT"]))" }
    return Table(
      name: safe, arguments: "\(areIntegers ? "rtree_i32" : "rtree")(\(columns.joined(separator: ", ")))",
      coordinates: coordinates, areIntegers: areIntegers, others: others, hasPhrases: false, hasWords: false)
  }

  /// Changes one row; a change that a constraint refuses has no effect.
  static func edit(
    _ table: Table, on connection: borrowing SQLiteConnection, _ random: inout SeededGenerator, among keys: Int = 20
  ) throws {
    let key =
      random.oneIn(12)
      ? random.pick(["9223372036854775807", "-9223372036854775808", "0", "-3"])
      : "\(Int.random(in: 1...keys, using: &random))"
    let rowID = table.coordinates == nil ? "rowid" : "id"
    let names =
      (0..<(table.coordinates ?? 0)).map { "\"x\($0)\"" }
      + (0..<table.others).map { table.coordinates == nil ? "\"c \($0)\"" : "\"a \($0)\"" }
    let values = bounds(table, &random) + (0..<table.others).map { _ in value(&random) }
    let sql: String
    switch Int.random(in: 0..<8, using: &random) {
    case 0...3:
      sql =
        "INSERT INTO \(table.quoted)(\(([rowID] + names).joined(separator: ", "))) "
        + "VALUES (\(([key] + values).joined(separator: ", ")))"
    case 4: sql = "DELETE FROM \(table.quoted) WHERE \(rowID) = \(key)"
    default:
      let some = names.indices.filter { _ in !random.oneIn(3) }
      guard !some.isEmpty else { return }
      let assignments = some.map { "\(names[$0]) = \(values[$0])" }.joined(separator: ", ")
      sql = "UPDATE \(table.quoted) SET \(assignments) WHERE \(rowID) = \(key)"
    }
    try connection.executeUnlessRefused(sql)
  }

  private static func bounds(_ table: Table, _ random: inout SeededGenerator) -> [String] {
    (0..<(table.coordinates ?? 0) / 2).flatMap { _ in
      if table.areIntegers {
        let pair = [Int32.random(in: .min...(.max), using: &random), Int32.random(in: -9...9, using: &random)].sorted()
        return ["\(pair[0])", "\(pair[1])"]
      }
      // Mostly numbers that do not fit into 32 bits: SQLite rounds the box outwards.
      let low = Double.random(in: -10...10, using: &random)
      let high = low + Double.random(in: 0...5, using: &random)
      return random.oneIn(10) ? ["-9e999", "9e999"] : ["\(low)", "\(high)"]
    }
  }

  private static func value(_ random: inout SeededGenerator) -> String {
    switch Int.random(in: 0..<10, using: &random) {
    case 0: return random.pick(["NULL", "x''", "x'00ff'", "''"])
    case 1: return random.pick(["9007199254740993", "-0.0", "1.5", "9e999", "'1.5'", "5"])
    default:
      let count = Int.random(in: 1...6, using: &random)
      return "'\((0..<count).map { _ in random.pick(words) }.joined(separator: " "))'"
    }
  }

  // MARK: Answers

  /// The contents of a table and its answers to queries.
  static func answers(of table: Table, on connection: borrowing SQLiteConnection) throws -> [String] {
    // Names are already escaped for quotation marks here.
    let name = table.name.split(separator: "\"\"", omittingEmptySubsequences: false).joined(separator: "\"")
    var answers = try VirtualRows.content(of: name, on: connection)
    try VirtualRows.requireSound(name, on: connection)
    guard let coordinates = table.coordinates else {
      let single = table.hasPhrases || table.hasWords ? words + ["ri*"] : words.filter { $0.count == 3 }
      for word in single + (table.hasPhrases ? ["\"red fox\""] : []) {
        answers.append("\(word): \(try VirtualRows.matches(name, word, on: connection))")
      }
      return answers
    }
    for bound in [-5, 0, 3] {
      let terms = (0..<coordinates).map { "\"x\($0)\" \($0.isMultiple(of: 2) ? "<=" : ">=") \(bound)" }
      let ids = try connection.text(
        "SELECT group_concat(id) FROM (SELECT id FROM \(table.quoted) WHERE \(terms.joined(separator: " AND ")) ORDER BY id)"
      )
      answers.append("\(bound): \(ids ?? "none")")
    }
    return answers
  }
}
