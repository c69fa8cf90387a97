import SQLiteConnections
import TestSupport
import Testing

@testable import SQLiteSchemas

/// CREATE VIRTUAL TABLE statements that are parsed, and written again.
@Suite struct VirtualModuleTests {
  struct Example: Sendable, CustomTestStringConvertible {
    let arguments: String
    let module: VirtualModule?
    var testDescription: String { arguments }

    init(_ arguments: String, _ module: VirtualModule?) {
      self.arguments = arguments
      self.module = module
    }

    static func words(_ tokenizer: FullTextTokenizer) -> VirtualModule {
      .fullText(FullTextIndex(options: FullTextOptions(tokenizer: tokenizer)))
    }

    static let unknownOptions = VirtualModule.fullText(FullTextIndex(options: nil))
  }

  static let examples = [
    Example("rtree(id, x, y)", .spatial(SpatialIndex(coordinates: 2))),
    Example("RTree_I32(id, x, y, z, w, +name TEXT, +x)", nil),
    Example("RTree_I32(id, x, y, z, w, +name TEXT, +v)", .spatial(SpatialIndex(kind: .integer, coordinates: 4))),
    Example("rtree(\"the id\", [a b], `c,d`, +\"e \"\"f\" BLOB NOT NULL)", .spatial(SpatialIndex(coordinates: 2))),
    Example("fts5(a, b UNINDEXED, \"c d\" unindexed)", .fullText(FullTextIndex(unindexed: [1, 2]))),
    Example("fts5(a, tokenize = porter)", Example.words(FullTextTokenizer(.unicode61, stems: true))),
    Example("fts5(a, TOK=ascii)", Example.words(FullTextTokenizer(.ascii))),
    Example(
      "fts5(a, tokenize = 'porter Unicode61 Remove_Diacritics 2 tokenchars ''-''''_'' separators ''x''')",
      Example.words(
        FullTextTokenizer(
          .unicode61, stems: true,
          options: [.init(.removeDiacritics, "2"), .init(.tokenCharacters, "-'_"), .init(.separators, "x")]))),
    Example(
      "fts5(a, tokenize = \"unicode61 categories 'L* N* Co'\")",
      Example.words(FullTextTokenizer(.unicode61, options: [.init(.categories, "L* N* Co")]))),
    Example(
      "fts5(a, tokenize = 'trigram case_sensitive 1')",
      Example.words(FullTextTokenizer(.trigram, options: [.init(.caseSensitive, "1")]))),
    Example(
      "fts5(a, prefix = '2 3', prefix=4, detail=col, columnsize=0)",
      .fullText(FullTextIndex(options: FullTextOptions(prefixes: [2, 3, 4], detail: .column, hasColumnSizes: false)))),
    Example(
      "fts5(a, d=none, p='5,6')", .fullText(FullTextIndex(options: FullTextOptions(prefixes: [5, 6], detail: .none)))),
    Example("fts5(a, tokenize='porter porter ascii')", Example.unknownOptions),
    Example("fts5(a, content_rowid=id)", .fullText(FullTextIndex())),
    Example("fts4(a)", nil), Example("geopoly(a)", nil),
  ]

  /// The parsed statement, and the columns that SQLite reports; nil when SQLite refuses the statement.
  private static func read(_ sql: String) throws -> (module: VirtualModule?, columns: [String])? {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    do { try connection.execute(sql) } catch { return nil }
    let columns = try TestDatabases.texts(
      "SELECT name FROM pragma_table_xinfo('t') WHERE hidden <> 1 ORDER BY cid", on: connection)
    let stored = try connection.text("SELECT sql FROM sqlite_schema WHERE name = 't'") ?? ""
    let definition = try #require(VirtualTableDefinition(parsing: stored))
    return (VirtualModule(definition, columns: columns), columns)
  }

  @Test("A statement is parsed, and the statement written from it is parsed to the same", arguments: examples)
  func roundTrip(_ example: Example) throws {
    let read = try Self.read("CREATE VIRTUAL TABLE t USING \(example.arguments)")
    guard let read else {
      #expect(example.module == nil)
      return
    }
    #expect(read.module == example.module)
    guard let module = read.module, module != Example.unknownOptions else { return }
    let table = TableDefinition(name: "t", columns: read.columns.map { ColumnDefinition(name: $0) }, module: module)
    let again = try #require(try Self.read(table.createStatement(siblings: [])))
    #expect(again.module == module)
    #expect(again.columns == read.columns)
  }

  @Test(
    "The content option is found by a prefix of its name, as SQLite finds it",
    arguments: [
      ("fts5(a)", nil), ("fts5(a, c='')", ""), ("fts5(a, cont = notes)", "notes"),
      ("fts5(a, CONTENT='my notes')", "my notes"),
      ("fts5(a, content=)", ""), ("fts5(a, columnsize=0)", nil), ("fts5(a, content_rowid=c)", nil),
      ("fts5(a, content_rowid=id, content=n)", "n"), ("fts5(content)", nil),
    ] as [(String, String?)])
  func content(_ example: (arguments: String, content: String?)) throws {
    let sql = "CREATE VIRTUAL TABLE t USING \(example.arguments)"
    #expect(try #require(VirtualTableDefinition(parsing: sql)).fullTextContent == example.content)
  }

  @Test("Any random statement that SQLite accepts can be written again")
  func randomStatements() throws {
    var random = SeededGenerator(seed: 7)
    func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }
    func pick(_ choices: [String]) -> String { choices[below(choices.count)] }
    let names = [
      "a", "\"b c\"", "[d,e]", "`f\"\"`", "'g'", "h_1", "\"i\"\"j\"", "é", "\"content\"", "/* k */ l", "\"m)\"",
      "-- n\n o",
      "1p", "unindexed",
    ]
    let columns = ["", " UNINDEXED", " unindexed", " /* x */ UNINDEXED", " TEXT"]
    let options = [
      "prefix=2", "PREFIX = '1 4'", "pre=\"3,5\"", "tokenize=porter", "tokenize = 'unicode61 tokenchars ''(,)'''",
      "t=ascii", "tokenize=\"trigram case_sensitive '1'\"", "detail=none", "det = [column]", "columnsize=0", "colu='1'",
      "tokenize=''", "tokenize='porter'", "tokenize='ascii separators ''x'' tokenchars ''y'''", "content_rowid=q", "c=",
      "content='n'", "tokenize='porter ''ascii'' '", "tokenize='unicode61 remove_diacritics 2'",
      "tokenize='UNICODE61 categories ''L* Nd'''",
    ]
    let auxiliary = ["+aux", "+ aux", "+\"a u\" TEXT", "+v INT /* y */", "+w \"odd type\"", "+[x y]  BLOB NOT NULL"]
    var taken = 0
    for _ in 0..<3_000 {
      var arguments: [String] = []
      let isSpatial = below(3) == 0
      for _ in 0..<(1 + below(5)) { arguments.append(pick(names) + (isSpatial ? "" : pick(columns))) }
      for _ in 0..<below(3) { arguments.append(pick(isSpatial ? auxiliary : options)) }
      let module = pick(isSpatial ? ["rtree", "RTREE_I32"] : ["fts5", "\"FTS5\""])
      let sql = "CREATE VIRTUAL TABLE t USING \(module) (\(arguments.joined(separator: pick([", ", " ,", "\n,"]))))"
      guard let read = try Self.read(sql) else { continue }
      taken += 1
      let found = try #require(read.module, "\(sql)")
      if case .fullText(let index) = found, index.options == nil { continue }
      let table = TableDefinition(name: "t", columns: read.columns.map { ColumnDefinition(name: $0) }, module: found)
      let again = try #require(try Self.read(table.createStatement(siblings: [])), "\(sql)")
      #expect(again.module == found, "\(sql)")
      #expect(again.columns.elementsEqual(read.columns) { $0.utf8.elementsEqual($1.utf8) }, "\(sql)")
    }
    #expect(taken > 300)
  }

  // MARK: Hostile definitions

  private static let hostile = [
    "a", "x\"y", "'", "\"", "]", "`", ")", "(", ",", "--", "/*", "a, b", "content=''", "x UNINDEXED", "+x", "= y", "\\",
    "tokenize", "a\nb", "é", "e\u{301}", " ", "''", "\"\"", "x); DROP TABLE t; --", "%s%Q", "NULL", "1", "a=b",
  ]

  private static func spatial(_ columns: [ColumnDefinition], name: String = "t") -> TableDefinition {
    var columns = columns
    columns[0].declaredType = "INTEGER"
    columns[0].isNotNull = true
    for place in 1...2 { columns[place].declaredType = "REAL" }
    return TableDefinition(
      name: name, columns: columns, primaryKey: [0], module: .spatial(SpatialIndex(coordinates: 2)))
  }

  /// Creates the table in an empty database, and checks that nothing else is created.
  private static func expectOnlyThisTable(_ table: TableDefinition, types: Bool = false) throws {
    #expect(table.creationRefusal == nil, "\(table.columns.map(\.name))")
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    do {
      try connection.execute(table.createStatement(siblings: []))
    } catch {
      // SQLite may refuse a name. Then nothing must be created.
      #expect(try connection.integer("SELECT count(*) FROM sqlite_schema") == 0)
      return
    }
    let query = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid"
    let columns = try TestDatabases.texts(query, binding: [table.name], on: connection)
    #expect(columns.elementsEqual(table.columns.map(\.name)) { $0.utf8.elementsEqual($1.utf8) })
    #expect(try connection.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND rootpage = 0") == 1)
    let stored = try #require(try connection.text("SELECT sql FROM sqlite_schema WHERE rootpage = 0"))
    let definition = try #require(VirtualTableDefinition(parsing: stored))
    #expect(VirtualModule(definition, columns: columns) == table.module)
  }

  @Test("Hostile names are names and nothing else", arguments: hostile)
  func hostileNames(_ name: String) throws {
    let others = ["o1", "o2", "o3"].map { ColumnDefinition(name: $0) }
    for place in 0..<4 {
      var columns = others
      columns.insert(ColumnDefinition(name: name), at: place)
      try Self.expectOnlyThisTable(Self.spatial(columns))
      try Self.expectOnlyThisTable(
        TableDefinition(name: "t", columns: columns, module: .fullText(FullTextIndex(unindexed: [place]))))
    }
    try Self.expectOnlyThisTable(Self.spatial(others, name: name))
    try Self.expectOnlyThisTable(TableDefinition(name: name, columns: others, module: .fullText(FullTextIndex())))
  }

  @Test("Hostile types and tokenizer options are values and nothing else", arguments: hostile)
  func hostileTexts(_ text: String) throws {
    let columns = ["o1", "o2", "o3", "o4"].map { ColumnDefinition(name: $0) }
    var typed = columns
    typed[3].declaredType = text
    try Self.expectOnlyThisTable(Self.spatial(typed))
    for name in [FullTextTokenizer.OptionName.tokenCharacters, .separators] {
      for kind in [FullTextTokenizer.Kind.unicode61, .ascii] {
        let tokenizer = FullTextTokenizer(kind, stems: true, options: [.init(name, text)])
        let index = FullTextIndex(options: FullTextOptions(tokenizer: tokenizer))
        try Self.expectOnlyThisTable(TableDefinition(name: "t", columns: columns, module: .fullText(index)))
      }
    }
    for name in [FullTextTokenizer.OptionName.categories, .caseSensitive, .removeDiacritics] {
      let tokenizer = FullTextTokenizer(name == .caseSensitive ? .trigram : .unicode61, options: [.init(name, text)])
      let index = FullTextIndex(options: FullTextOptions(tokenizer: tokenizer))
      let table = TableDefinition(name: "t", columns: columns, module: .fullText(index))
      if name == .removeDiacritics && text == "1" || name == .caseSensitive && text == "1"
        || name == .categories && text == " "
      {
        try Self.expectOnlyThisTable(table)
      } else {
        #expect(table.moduleContradiction?.contains(name.rawValue) == true)
        #expect(table.creationRefusal != nil)
      }
    }
  }

  private static func words(_ change: (inout TableDefinition) -> Void) -> TableDefinition {
    var table = TableDefinition(
      name: "t", columns: [ColumnDefinition(name: "a"), ColumnDefinition(name: "b")], module: .fullText(FullTextIndex())
    )
    change(&table)
    return table
  }

  private static func places(_ change: (inout TableDefinition) -> Void) -> TableDefinition {
    var table = spatial(["id", "x", "y"].map { ColumnDefinition(name: $0) })
    change(&table)
    return table
  }

  private static func indexed(_ options: FullTextOptions?, unindexed: [Int] = []) -> VirtualModule {
    .fullText(FullTextIndex(unindexed: unindexed, options: options))
  }

  /// Definitions that contradict themselves.
  static let contradictions: [TableDefinition] = [
    words { $0.isStrict = true }, words { $0.isWithoutRowID = true }, words { $0.primaryKey = [0] },
    words { $0.unique = [[0]] }, words { $0.columns[0].declaredType = "TEXT" },
    words { $0.columns[0].isNotNull = true },
    words { $0.columns[1].defaultValue = LiteralDefault(parsing: "1") }, words { $0.columns[1].collation = "NOCASE" },
    words { $0.generated = [GeneratedColumn(name: "g", isStored: true)] },
    words { $0.foreignKeys = [ForeignKey(columns: ["a"], parent: "p")] },
    words { $0.module = indexed(FullTextOptions(), unindexed: [2]) },
    words { $0.module = indexed(FullTextOptions(), unindexed: [1, 0]) },
    words { $0.module = indexed(FullTextOptions(), unindexed: [0, 0]) },
    words { $0.module = indexed(FullTextOptions(), unindexed: [-1]) },
    words { $0.module = indexed(FullTextOptions(prefixes: [0])) },
    words { $0.module = indexed(FullTextOptions(prefixes: [1_000])) },
    words { $0.module = indexed(FullTextOptions(prefixes: Array(repeating: 2, count: 32))) },
    words {
      $0.module = indexed(FullTextOptions(tokenizer: FullTextTokenizer(.ascii, options: [.init(.categories, "L*")])))
    },
    words {
      $0.module = indexed(FullTextOptions(tokenizer: FullTextTokenizer(.ascii, options: [.init(.separators, "a\0")])))
    },
    words {
      let options = Array(repeating: FullTextTokenizer.Option(.separators, "x"), count: 17)
      $0.module = indexed(FullTextOptions(tokenizer: FullTextTokenizer(.ascii, options: options)))
    },
    places { $0.module = .spatial(SpatialIndex(coordinates: 3)) },
    places { $0.module = .spatial(SpatialIndex(coordinates: 0)) },
    places { $0.module = .spatial(SpatialIndex(coordinates: 4)) },
    places { $0.module = .spatial(SpatialIndex(coordinates: -2)) },
    places { $0.module = .spatial(SpatialIndex(kind: .integer, coordinates: 2)) },
    places { $0.columns[0].declaredType = "INT" }, places { $0.columns[0].isNotNull = false },
    places { $0.columns[2].isNotNull = true }, places { $0.columns[2].declaredType = "TEXT" },
    places { $0.primaryKey = [] }, places { $0.primaryKey = [1] }, places { $0.primaryKey = [0, 1] },
    places { $0.isAutoIncrement = true },
    places { $0.columns += (0..<101).map { ColumnDefinition(name: "aux\($0)") } },
  ]

  @Test("A definition that contradicts itself is refused")
  func contradict() {
    for (place, table) in Self.contradictions.enumerated() {
      #expect(table.moduleContradiction != nil, "\(place): \(table)")
      #expect(table.creationRefusal != nil, "\(place): \(table)")
    }
    #expect(Self.words { _ in }.creationRefusal == nil)
    #expect(Self.places { _ in }.creationRefusal == nil)
    #expect(Self.words { $0.module = nil }.moduleContradiction == nil)
  }

  @Test(
    "A virtual table with reserved names, or shadow tables with them, is refused",
    arguments: [
      ("buckia", "a"), ("sqlite", "a"), ("pragma", "a"), ("t", "T"), ("t", "Rank"), ("t", "rowid"), ("t", "oid"),
      ("t", ""),
      ("t", "b"), ("sqlite_x", "a"), ("", "a"),
    ])
  func obstacles(_ example: (table: String, column: String)) {
    let table = Self.words {
      $0.name = example.table
      $0.columns[0].name = example.column
    }
    #expect(table.creationRefusal != nil)
    let sound = Self.words { $0.name = "buckiax" }
    #expect(sound.creationRefusal == nil)
  }

  @Test("A table with an unknown tokenizer is not created")
  func unknownOptions() {
    let table = Self.words { $0.module = Example.unknownOptions }
    #expect(table.moduleContradiction == nil)
    #expect(table.creationRefusal?.contains("tokenizer") == true)
  }
}
