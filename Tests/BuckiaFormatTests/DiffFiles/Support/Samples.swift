import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

@testable import BuckiaFormat

/// The contents of the tests' diff files.
enum Sample {
  static let id = KSUID(timestamp: 107_608_047, payloadHigh: 0xb5a1_cd34_b5f9_9d11, payloadLow: 0x54fb_6853_345c_9735)
  static let earlier = KSUID(timestamp: 107_608_046, payloadHigh: 1, payloadLow: 2)
  static let later = KSUID(timestamp: 107_608_048, payloadHigh: 1, payloadLow: 2)

  static func signer() throws -> ManifestSigner { try ManifestSigner(seed: [UInt8](repeating: 7, count: 32)) }

  // MARK: Ordinary tables, one of them without a primary key

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

  static let changes = [
    TableChanges(
      "notes", key: [1, 0, 0],
      [
        .delete([4, "gone", nil]),
        .update(old: [3, "old", .unchanged], new: [.unchanged, "new", .unchanged]),
        .insert([1, "title 1", 0.5]),
        .insert([2, "title 2", 0.5]),
      ]),
    TableChanges(log.name, key: [1, 0], [.insert([7, "a line"])]),
  ]

  static let changeset = TableChanges.bytes(changes)

  // MARK: Virtual tables

  /// An R-tree with auxiliary columns.
  static let places = TableDefinition(
    name: "places",
    columns: [ColumnDefinition(name: "id", declaredType: "INTEGER", isNotNull: true)]
      + ["minX", "maxX", "minY", "maxY"].map { ColumnDefinition(name: $0, declaredType: "REAL") }
      + [ColumnDefinition(name: "the \"name\"", declaredType: "TEXT")],
    primaryKey: [0], module: .spatial(SpatialIndex(coordinates: 4)))

  /// A full-text table with every option.
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

  static let virtualChanges = [
    TableChanges("places", key: [1, 0, 0, 0, 0, 0], [.insert([5, 0.5, 1.0, -2.0, 2.25, "kitchen"])]),
    TableChanges("words", key: [1, 0, 0], [.insert([1, "a bell", "en"])]),
  ]

  // MARK: A manifest with all fields

  /// Every field filled, including those that only later versions of the program use.
  static let fullManifest = Manifest(
    id: id, kind: .delta, critical: ["chain", "audience"], dataset: .repeating(0x11),
    sender: Manifest.Sender(
      replica: .repeating(0x22), incarnation: .repeating(0x33),
      additional: JSONObject([.init("nickname", "A\u{301}nna")])),
    audience: .recipients(
      salt: .repeating(0x44),
      hashes: [Audience.hash(of: [UInt8](repeating: 9, count: 32), salt: .repeating(0x44))]),
    chain: Manifest.Chain(
      stream: .repeating(0x55), sequence: 2,
      follows: Manifest.Chain.Predecessor(id: earlier, manifestSHA256: .repeating(0x66))),
    acknowledgements: [
      Manifest.Acknowledgement(
        stream: .repeating(0x77), incarnation: .repeating(0x88), through: 12,
        except: [.init(id: earlier, state: .held)])
    ],
    renames: [ColumnRename(table: "notes", from: "words", to: "text")],
    additional: JSONObject([.init("authority", []), .init("mood", ["calm": true, "level": -3])]))

  /// Changes of three origins, including a withdrawal.
  static let annotations = Annotations(
    origins: [id, earlier],
    runs: [
      .init(count: 1, origin: 1, kind: .withdraw),
      .init(count: 3, origin: 0, columns: [.init(column: 2, origin: 1)]),
      .init(count: 1, origin: 1),
    ])
}

extension FixedBytes {
  /// A value whose bytes are all the same.
  static func repeating(_ byte: UInt8) -> Self {
    guard let value = Self([UInt8](repeating: byte, count: byteCount)) else {
      preconditionFailure("\(Self.self) does not take \(byteCount) bytes")
    }
    return value
  }
}

extension Manifest.Table {
  /// The manifest's description of the changes of `notes`.
  static func notes(
    _ name: String = "notes", columns: Int = 3, inserted: Int64 = 2, updated: Int64 = 1, deleted: Int64 = 1,
    withdrawn: Int64 = 0
  ) -> Manifest.Table {
    Manifest.Table(
      name: name, columns: columns, order: .key, inserted: inserted, updated: updated, deleted: deleted,
      withdrawn: withdrawn)
  }

  /// The manifest's description of the changes of the table without a primary key.
  static func log(_ name: String = Sample.log.name, key: Key = .rowid) -> Manifest.Table {
    Manifest.Table(name: name, columns: 2, key: key, inserted: 1)
  }
}

extension TemporaryBuffer {
  func bytes() throws -> [UInt8] { try allBytes() }
}
