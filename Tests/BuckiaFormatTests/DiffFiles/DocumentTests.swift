import BuckiaBytes
import SQLiteSchemas
import Testing

@testable import BuckiaFormat

@Suite struct DocumentTests {
  @Test("The order and text of a manifest are fixed")
  func manifestText() throws {
    var manifest = Sample.fullManifest
    manifest.members = [Manifest.Member(name: "changeset", size: 0, sha256: .repeating(0))]
    manifest.tables = [.notes()]
    guard case .object(let object) = manifest.json else { return #expect(Bool(false)) }
    #expect(
      object.members.map(\.name) == [
        "format", "critical", "kind", "id", "dataset", "sender", "audience", "chain", "acks", "renames", "tables",
        "members", "authority", "mood",
      ])
    #expect(
      object["tables"]?.text()
        == #"[{"name":"notes","columns":3,"key":"primary","order":"key","inserted":2,"updated":1,"#
        + #""deleted":1,"withdrawn":0}]"#)
    #expect(try Manifest(parsing: manifest.json.bytes()) == manifest)
  }

  @Test("A table of 100,000 columns is refused")
  func tooManyColumns() throws {
    let column = #"{"name":"c","type":"","notNull":false,"default":null,"collation":"BINARY"}"#
    let columns = (0..<100_000).map { column.replacing("\"c\"", with: "\"c\($0)\"") }.joined(separator: ",")
    let text =
      #"{"format":1,"tables":[{"name":"t","withoutRowID":false,"strict":false,"autoIncrement":false,"columns":["#
      + columns + #"],"generated":[],"primaryKey":[0],"unique":[],"foreignKeys":[]}]}"#
    let error = #expect(throws: DiffFileError.self) { try SchemaDocument.parse(Array(text.utf8)) }
    #expect(error?.description.contains("2000") == true || error?.code == .tooLarge)
  }

  @Test("A definition omits default values, and is read the same with them")
  func usualValues() throws {
    let column = #""notNull":false,"default":null,"collation":"BINARY""#
    let written =
      #"{"format":1,"tables":[{"name":"t","columns":[{"name":"a","type":"INTEGER"},{"name":"b","type":""}],"primaryKey":[0]}]}"#
    let spelledOut =
      #"{"format":1,"tables":[{"name":"t","withoutRowID":false,"strict":false,"autoIncrement":false,"#
      + #""columns":[{"name":"a","type":"INTEGER",\#(column)},{"name":"b","type":"",\#(column)}],"generated":[],"primaryKey":[0],"#
      + #""unique":[],"foreignKeys":[]}]}"#
    let tables = try SchemaDocument.parse(Array(spelledOut.utf8))
    #expect(try String(decoding: SchemaDocument.bytes(tables), as: UTF8.self) == written)
    #expect(try SchemaDocument.parse(Array(written.utf8)) == tables)
    let key = #""foreignKeys":[{"columns":["b"],"parent":"p","parentColumns":[]"#
    let withKey = written.replacing(#""primaryKey":[0]"#, with: #""primaryKey":[0],\#(key)}]"#)
    let definition = try #require(try SchemaDocument.parse(Array(withKey.utf8)).first)
    #expect(definition.foreignKeys.map(\.onDelete) == [.noAction])
    #expect(try String(decoding: SchemaDocument.bytes([definition]), as: UTF8.self) == withKey)
  }

  @Test("Null means absent")
  func nullIsAbsent() throws {
    var manifest = Manifest(id: Sample.id)
    manifest.members = [Manifest.Member(name: "changeset", size: 0, sha256: .repeating(0))]
    let text = manifest.json.text().replacing("\"tables\"", with: "\"sender\":null,\"chain\":null,\"tables\"")
    #expect(try Manifest(parsing: Array(text.utf8)) == manifest)
  }

  @Test(
    "A field that violates its rule is named",
    arguments: [
      ("\"stream\":\"5", "\"stream\":\"A", "chain.stream"),
      ("\"sequence\":2", "\"sequence\":0", "chain.sequence"),
      ("\"sequence\":2", "\"sequence\":1", "chain.follows"),
      ("\"sequence\":2", "\"sequence\":9007199254740992", "chain.sequence"),
      ("\"replaces\":null", "\"replaces\":\"\(String(repeating: "0", count: 32))\"", "chain.replaces"),
      ("\"follows\":{", "\"follows\":{\"x\":1,", "chain.follows.x"),
      ("\"state\":\"held\"", "\"state\":\"lost\"", "acks[0].except[0].state"),
      ("\"through\":12", "\"through\":\"12\"", "acks[0].through"),
      ("\"salt\":\"44", "\"salt\":\"", "audience.salt"),
      ("\"recipients\":[", "\"recipients\":[\"\",", "audience.recipients[0]"),
      ("\"kind\":\"delta\"", "\"kind\":\"gift\"", "kind"),
      ("\"kind\":\"delta\"", "\"kind\":7", "kind"),
      ("\"critical\":[\"chain\",", "\"critical\":[\"chain\",\"chain\",", "critical"),
      ("\"dataset\":\"11", "\"dataset\":\"1", "dataset"),
    ])
  func brokenFields(find: String, put: String, field: String) throws {
    var manifest = Sample.fullManifest
    manifest.members = [Manifest.Member(name: "changeset", size: 0, sha256: .repeating(0))]
    let text = manifest.json.text().replacing(find, with: put)
    #expect(text != manifest.json.text())
    let error = try #require(throws: DiffFileError.self) { try Manifest(parsing: Array(text.utf8)) }
    #expect(error.code == .badManifest, "\(error)")
    #expect(error.description.hasPrefix("manifest.json: \"\(field)\" "), "\(error)")
  }

  @Test("Table definitions are written, read and identified by one digest")
  func definitions() throws {
    var odd = TableDefinition(name: "it's \"odd\"\n表", columns: [ColumnDefinition(name: "", declaredType: "int, x")])
    odd.columns.append(ColumnDefinition(name: "rowid", hasExpressionDefault: true, collation: "german"))
    odd.columns.append(ColumnDefinition(name: "e\u{301}"))
    odd.columns.append(ColumnDefinition(name: "\u{e9}", defaultValue: LiteralDefault(parsing: "x'00ff'")))
    odd.primaryKey = [2, 0]
    odd.unique = [[1, 1]]
    odd.isWithoutRowID = true
    odd.isStrict = true
    let bytes = try SchemaDocument.bytes([odd] + Sample.schema)
    let read = try SchemaDocument.parse(bytes)
    #expect(try SchemaDocument.bytes(read) == bytes)
    odd.columns[1].hasExpressionDefault = false
    #expect(read == [odd] + Sample.schema)
  }

  @Test("Impossible definitions are refused by the writer, too")
  func unusableDefinitions() throws {
    let column = ColumnDefinition(name: "a")
    let many = (0...DiffFileLimits.columns).map { ColumnDefinition(name: "c\($0)") }
    let bad: [TableDefinition] = [
      TableDefinition(name: "t", columns: []),
      TableDefinition(name: "t", columns: [column, ColumnDefinition(name: "A")], primaryKey: [0]),
      TableDefinition(name: "t", columns: [column], generated: [GeneratedColumn(name: "a", isStored: true)]),
      TableDefinition(name: "t", columns: [column], isWithoutRowID: true),
      TableDefinition(name: "t", columns: [column], primaryKey: [0], isAutoIncrement: true),
      TableDefinition(name: "t", columns: [column], unique: [[]]),
      TableDefinition(name: "t", columns: [column], foreignKeys: [ForeignKey(columns: ["b"], parent: "p")]),
      TableDefinition(name: "t", columns: [column], foreignKeys: [ForeignKey(columns: ["a"], parent: "sqlite_x")]),
      TableDefinition(name: String(repeating: "t", count: 1025), columns: [column]),
      TableDefinition(name: "t\0", columns: [column]),
      TableDefinition(name: "t", columns: [ColumnDefinition(name: "_RowID_")]),
      TableDefinition(name: "t", columns: many),
    ]
    for table in bad {
      let error = try #require(throws: DiffFileError.self) { try SchemaDocument.bytes([table]) }
      #expect([.badSchema, .badName].contains(error.code), "\(error)")
    }
    #expect(throws: DiffFileError.self) { try SchemaDocument.bytes([Sample.log, Sample.log]) }
  }

  @Test("The module of a virtual table is a separate field, which other tables do not have")
  func virtualModuleField() throws {
    let text = String(decoding: try SchemaDocument.bytes(Sample.virtual + [Sample.log]), as: UTF8.self)
    #expect(text.contains(#""primaryKey":[0],"module":{"name":"rtree","coordinates":4}}"#))
    #expect(
      text.contains(
        #""primaryKey":[],"module":{"name":"fts5","unindexed":[1],"options":{"tokenizer":{"name":"unicode61","#
          + #""stems":true,"options":[{"name":"remove_diacritics","value":"2"},{"name":"tokenchars","value":"-"}]},"#
          + #""prefixes":[2,3],"detail":"column","columnSizes":true}}}"#))
    #expect(text.ranges(of: "\"module\"").count == 2)
  }

  @Test("Every virtual table is written and read unchanged")
  func virtualTables() throws {
    var tables = Sample.virtual
    for (place, options) in [
      nil, FullTextOptions(),
      FullTextOptions(tokenizer: FullTextTokenizer(.trigram, options: [.init(.caseSensitive, "0")])),
      FullTextOptions(tokenizer: FullTextTokenizer(.ascii, options: [.init(.separators, "x'\"\u{1}é")])),
      FullTextOptions(prefixes: [999], detail: .none, hasColumnSizes: false),
    ].enumerated() {
      var table = Sample.words
      table.name += "\(place)"
      table.module = .fullText(FullTextIndex(options: options))
      tables.append(table)
    }
    var cells = Sample.places
    cells.name = "cells"
    cells.module = .spatial(SpatialIndex(kind: .integer, coordinates: 2))
    cells.columns = [cells.columns[0]] + ["low", "high"].map { ColumnDefinition(name: $0, declaredType: "INT") }
    tables.append(cells)
    #expect(try SchemaDocument.parse(SchemaDocument.bytes(tables)) == tables)
  }

  @Test("A module that does not fit its table is refused by the writer, too")
  func moduleMismatch() throws {
    var misfit = Sample.words
    misfit.columns[0].declaredType = "TEXT"
    var keyless = Sample.places
    keyless.primaryKey = []
    var odd = Sample.places
    odd.module = .spatial(SpatialIndex(coordinates: 5))
    for table in [misfit, keyless, odd] {
      let error = try #require(throws: DiffFileError.self) { try SchemaDocument.bytes([table]) }
      #expect(error.code == .badSchema)
      #expect(error.description.contains("\"module\" does not fit"))
    }
  }

  @Test("Annotations are written and read without redundancy")
  func annotations() throws {
    let annotations = Sample.annotations
    #expect(try Annotations(parsing: annotations.bytes()) == annotations)
    #expect(
      String(decoding: annotations.bytes(), as: UTF8.self)
        == "{\"format\":1,\"origins\":[\"\(Sample.id)\",\"\(Sample.earlier)\"],\"runs\":["
        + #"{"count":1,"origin":1,"kind":"withdraw"},"#
        + #"{"count":3,"origin":0,"columns":[{"column":2,"origin":1}]},{"count":1,"origin":1}]}"#)
  }

  @Test(
    "Annotations that violate a rule are refused",
    arguments: [
      #"{"format":1,"origins":[],"runs":[{"count":1,"origin":0}]}"#,
      #"{"format":1,"origins":["x"],"runs":[]}"#,
      #"{"format":1,"origins":["0ujtsYcgvSTl8PAuAdqWYSMnLOv","0ujtsYcgvSTl8PAuAdqWYSMnLOv"],"runs":[]}"#,
      #"{"format":1,"origins":["0ujtsYcgvSTl8PAuAdqWYSMnLOv"],"runs":[{"count":0,"origin":0}]}"#,
      #"{"format":1,"origins":["0ujtsYcgvSTl8PAuAdqWYSMnLOv"],"runs":[{"count":1,"origin":0,"kind":"x"}]}"#,
      #"{"format":1,"origins":["0ujtsYcgvSTl8PAuAdqWYSMnLOv"],"runs":[{"count":1,"origin":0,"more":1}]}"#,
      #"{"format":1,"origins":["0ujtsYcgvSTl8PAuAdqWYSMnLOv"],"runs":[{"count":1,"origin":0,"columns":"#
        + #"[{"column":1,"origin":0},{"column":1,"origin":0}]}]}"#,
    ])
  func brokenAnnotations(text: String) throws {
    let error = try #require(throws: DiffFileError.self) { try Annotations(parsing: Array(text.utf8)) }
    #expect(error.code == .badAnnotations)
  }

  @Test("A header follows POSIX")
  func tarHeader() {
    let header = TarHeader.bytes(name: "changeset", size: 8_589_934_591)
    #expect(header.count == 512)
    #expect(String(decoding: header[124..<135], as: UTF8.self) == "77777777777")
    #expect(TarHeader.claimedSize(header) == 8_589_934_591)
    let sum = header.enumerated().reduce(0) { $0 + ((148..<156).contains($1.offset) ? 32 : Int($1.element)) }
    let octal = String(sum, radix: 8)
    let padded = String(repeating: "0", count: 6 - octal.count) + octal
    #expect(Array(header[148..<156]) == Array("\(padded)\0 ".utf8))
  }

  @Test("Errors about hostile files cannot steer a terminal")
  func hostileErrorText() {
    let error = DiffFileError(.badName, "the table \(EscapedText.quoted("a\u{1b}[2J\u{202e}b"))", path: "x\ny")
    #expect(error.description.hasPrefix(#"x\ny: the table "a\u{1B}[2J\u{202E}b""#))
  }
}
