import BuckiaKSUID
import SQLiteChangesets
import SQLiteSchemas

@testable import BuckiaDiffFiles

/// Diffs that the tests write as literals.
enum Sample {
  static let id = KSUID(timestamp: 107_608_047, payloadHigh: 0xb5a1_cd34_b5f9_9d11, payloadLow: 0x54fb_6853_345c_9735)
  static let earlier = KSUID(timestamp: 107_608_046, payloadHigh: 1, payloadLow: 2)
  static let later = KSUID(timestamp: 107_608_048, payloadHigh: 1, payloadLow: 2)

  static func fixed<Value: FixedBytes>(_ byte: UInt8, as type: Value.Type = Value.self) throws -> Value {
    guard let value = Value([UInt8](repeating: byte, count: Value.byteCount)) else { throw SampleError() }
    return value
  }

  struct SampleError: Error {}

  /// Two ordinary tables, one of them without a primary key.
  static let notes = TableDefinition(
    name: "notes",
    columns: [
      ColumnDefinition(name: "id", declaredType: "INTEGER"),
      ColumnDefinition(
        name: "title", declaredType: "VARCHAR(80)", isNotNull: true, defaultValue: LiteralDefault(parsing: "'new'"),
        collation: "NOCASE"),
      ColumnDefinition(name: "body"),
    ],
    generated: [GeneratedColumn(name: "length", declaredType: "INT", isStored: false)],
    primaryKey: [0], isAutoIncrement: true, unique: [[1], [1, 2]],
    foreignKeys: [ForeignKey(columns: ["title"], parent: "topics", parentColumns: ["name"], onDelete: .cascade)])

  static let log = TableDefinition(name: "Überblick \"log\"", columns: [ColumnDefinition(name: "line")])

  static let schema = [notes, log]

  /// Two INSERTs, an UPDATE and a DELETE of notes, an INSERT of log.
  static var changeset: [UInt8] {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "notes", keyFlags: [1, 0, 0]))
    writer.beginChange(.delete)
    writer.append(integer: 4)
    writer.append(text: "gone")
    writer.appendNull()
    writer.beginChange(.update)
    writer.append(integer: 3)
    writer.append(text: "old")
    writer.appendUndefined()
    writer.appendUndefined()
    writer.append(text: "new")
    writer.appendUndefined()
    for row in Int64(1)...2 {
      writer.beginChange(.insert)
      writer.append(integer: row)
      writer.append(text: "title \(row)")
      writer.append(real: 0.5)
    }
    writer.beginTable(ChangesetTable(name: log.name, keyFlags: [1, 0]))
    writer.beginChange(.insert)
    writer.append(integer: 7)
    writer.append(text: "a line")
    return writer.bytes
  }

  /// An R-tree with auxiliary columns.
  static let places = TableDefinition(
    name: "places",
    columns: [ColumnDefinition(name: "id", declaredType: "INTEGER", isNotNull: true)]
      + ["minX", "maxX", "minY", "maxY"].map { ColumnDefinition(name: $0, declaredType: "REAL") }
      + [ColumnDefinition(name: "the \"name\"", declaredType: "TEXT")],
    primaryKey: [0], module: .spatial(SpatialIndex(coordinates: 4)))

  /// A full-text table with everything that can be said of one.
  static let words = TableDefinition(
    name: "words", columns: [ColumnDefinition(name: "title"), ColumnDefinition(name: "lang")],
    module: .fullText(
      FullTextIndex(
        unindexed: [1],
        options: FullTextOptions(
          tokenizer: FullTextTokenizer(
            .unicode61, stems: true, options: [.init(.removeDiacritics, "2"), .init(.tokenCharacters, "-")]),
          prefixes: [2, 3], detail: .column))))

  static let virtual = [places, words]

  /// An INSERT into each.
  static var virtualChangeset: [UInt8] {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "places", keyFlags: [1, 0, 0, 0, 0, 0]))
    writer.beginChange(.insert)
    writer.append(integer: 5)
    for coordinate in [0.5, 1, -2, 2.25] { writer.append(real: coordinate) }
    writer.append(text: "kitchen")
    writer.beginTable(ChangesetTable(name: "words", keyFlags: [1, 0, 0]))
    writer.beginChange(.insert)
    writer.append(integer: 1)
    writer.append(text: "a bell")
    writer.append(text: "en")
    return writer.bytes
  }

  static var tables: [Manifest.Table] {
    [
      Manifest.Table(name: "notes", columns: 3, order: .key, inserted: 2, updated: 1, deleted: 1),
      Manifest.Table(name: log.name, columns: 2, key: .rowid, inserted: 1),
    ]
  }

  /// As little as a diff can say.
  static var plainDraft: DiffFileDraft {
    DiffFileDraft(manifest: Manifest(id: id), schema: .included(schema), tablesInKeyOrder: ["notes"])
  }

  /// Every field filled, those included that only later versions of the program use.
  static func fullManifest() throws -> Manifest {
    Manifest(
      id: id, kind: .delta, critical: ["chain", "audience"], dataset: try fixed(0x11),
      sender: Manifest.Sender(
        identity: try signer().identity, replica: try fixed(0x22), incarnation: try fixed(0x33),
        additional: JSONObject([.init("nickname", "A\u{301}nna")])),
      audience: .recipients(
        salt: try fixed(0x44), hashes: [Audience.hash(of: [UInt8](repeating: 9, count: 32), salt: try fixed(0x44))]),
      chain: Manifest.Chain(
        stream: try fixed(0x55), sequence: 2,
        follows: Manifest.Chain.Predecessor(id: earlier, manifestSHA256: try fixed(0x66))),
      acknowledgements: [
        Manifest.Acknowledgement(
          stream: try fixed(0x77), incarnation: try fixed(0x88), through: 12,
          except: [.init(id: earlier, state: .held)])
      ],
      renames: [ColumnRename(table: "notes", from: "words", to: "text")],
      additional: JSONObject([.init("authority", []), .init("mood", ["calm": true, "level": -3])]))
  }

  static func fullDraft() throws -> DiffFileDraft {
    DiffFileDraft(
      manifest: try fullManifest(), schema: .included(schema), tablesInKeyOrder: ["NOTES"],
      annotations: Annotations(
        origins: [id, earlier],
        runs: [
          .init(count: 1, origin: 1, kind: .withdraw),
          .init(count: 3, origin: 0, columns: [.init(column: 2, origin: 1)]),
          .init(count: 1, origin: 1),
        ]),
      attachments: [
        .init(name: "b/photo.txt", content: ChangesetSpool(Array("not really".utf8))),
        .init(name: "a.txt", content: ChangesetSpool([])),
      ])
  }

  static func signer() throws -> ManifestSigner { try ManifestSigner(seed: [UInt8](repeating: 7, count: 32)) }
}

extension ChangesetSpool {
  func bytes() throws -> [UInt8] { try withBytes { $0.array(0..<$0.byteCount) } }
}
