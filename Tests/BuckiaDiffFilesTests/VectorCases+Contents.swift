import SQLiteChangesets
import SQLiteSchemas

@testable import BuckiaDiffFiles

extension VectorCase {
  private static func forged(_ change: (inout Forge) throws -> Void) throws -> [UInt8] {
    var forge = try Forge()
    try change(&forge)
    return try forge.file()
  }

  /// A changeset of one INSERT of one integer.
  private static func changeset(
    of table: String, format: ChangesetFormat = .changeset, before: String? = nil
  ) -> [UInt8] {
    var writer = ChangesetWriter()
    if let before { writer.beginTable(ChangesetTable(name: before, format: format, keyFlags: [1])) }
    writer.beginTable(ChangesetTable(name: table, format: format, keyFlags: [1]))
    writer.beginChange(.insert)
    writer.append(integer: 1)
    return writer.bytes
  }

  private static func single(
    _ table: String, format: ChangesetFormat = .changeset, before: String? = nil, claimed: String? = nil
  ) throws -> [UInt8] {
    try forged { forge in
      forge.schema = nil
      forge.changeset = changeset(of: table, format: format, before: before)
      forge.manifest.tables = [Manifest.Table(name: claimed ?? table, columns: 1, inserted: 1)]
    }
  }

  private static func schema(_ change: (inout [TableDefinition]) -> Void) throws -> [UInt8] {
    try forged { forge in
      var tables = Sample.schema
      change(&tables)
      forge.schema = try SchemaDocument.bytes(tables)
    }
  }

  private static func schemaText(_ change: (String) -> String) throws -> [UInt8] {
    try forged { $0.schema = Array(change(String(decoding: $0.schema ?? [], as: UTF8.self)).utf8) }
  }

  /// A file with virtual tables whose definitions are changed as text.
  private static func virtualText(_ find: String, _ put: String) throws -> [UInt8] {
    try forged { forge in
      let text = String(decoding: try SchemaDocument.bytes(Sample.virtual), as: UTF8.self)
      forge.schema = Array(text.replacing(find, with: put).utf8)
      forge.changeset = Sample.virtualChangeset
      forge.manifest.tables = [
        Manifest.Table(name: "places", columns: 6, inserted: 1),
        Manifest.Table(name: "words", columns: 3, key: .rowid, inserted: 1),
      ]
    }
  }

  private static func annotations(_ annotations: Annotations) throws -> [UInt8] {
    try forged { $0.annotations = annotations.bytes() }
  }

  static let contents = [
    VectorCase("digestMismatch-changeset.bdiff") { try Forge().file { $0[2].bytes[$0[2].bytes.count - 1] ^= 1 } },
    VectorCase("digestMismatch-schema.bdiff") { try Forge().file { $0[1].bytes[20] ^= 1 } },
    VectorCase("badName-sqlite.bdiff") { try single("sqlite_sequence") },
    VectorCase("badName-buckia.bdiff") { try single("Buckia_Ledger") },
    VectorCase("badName-header-without-changes.bdiff") { try single("notes", before: "sqlite_schema") },
    VectorCase("badName-not-in-manifest.bdiff") { try single("sqlite_sequence", claimed: "notes") },
    VectorCase("badChangeset-patchset.bdiff") { try single("notes", format: .patchset) },
    VectorCase("badChangeset-ends-early.bdiff") { try forged { $0.changeset.removeLast() } },
    VectorCase("badChangeset-garbage.bdiff") { try forged { $0.changeset = Array("no changeset".utf8) } },
    VectorCase("badChangeset-name-not-UTF-8.bdiff") {
      try forged { forge in
        guard let place = forge.changeset.firstIndex(of: 0xc3) else { return }
        forge.changeset[place + 1] = 0x20
      }
    },
    VectorCase("contradiction-inserted.bdiff") { try forged { $0.manifest.tables[0].inserted = 3 } },
    VectorCase("contradiction-updated.bdiff") { try forged { $0.manifest.tables[0].updated = 0 } },
    VectorCase("contradiction-deleted.bdiff") { try forged { $0.manifest.tables[0].deleted = 2 } },
    VectorCase("contradiction-withdrawn.bdiff") { try forged { $0.manifest.tables[0].withdrawn = 1 } },
    VectorCase("contradiction-columns.bdiff") { try forged { $0.manifest.tables[0].columns = 4 } },
    VectorCase("contradiction-key.bdiff") { try forged { $0.manifest.tables[1].key = .primary } },
    VectorCase("contradiction-table-missing.bdiff") { try forged { _ = $0.manifest.tables.removeLast() } },
    VectorCase("contradiction-table-added.bdiff") {
      try forged { $0.manifest.tables.append(.init(name: "more", columns: 1)) }
    },
    VectorCase("contradiction-table-case.bdiff") { try forged { $0.manifest.tables[0].name = "Notes" } },
    VectorCase("contradiction-schema-digest.bdiff") {
      let digest = RunningDigest.of(try Forge().schema ?? []).description
      let other = String(repeating: "0", count: 64)
      return try Forge().file(manifestText: {
        $0.replacing("\"schema\":\"\(digest)\"", with: "\"schema\":\"\(other)\"")
      })
    },
    VectorCase("contradiction-schema-table.bdiff") { try schema { _ = $0.removeLast() } },
    VectorCase("contradiction-schema-columns.bdiff") { try schema { $0[1].columns.append(.init(name: "more")) } },
    VectorCase("contradiction-schema-key.bdiff") {
      try schema {
        $0[0].isAutoIncrement = false
        $0[0].primaryKey = [1]
      }
    },
    VectorCase("badSchema-column-twice.bdiff") {
      try schemaText { $0.replacing("\"name\":\"body\"", with: "\"name\":\"TITLE\"") }
    },
    VectorCase("badSchema-default-expression.bdiff") {
      try schemaText { $0.replacing("\"'new'\"", with: "\"randomblob(9)\"") }
    },
    VectorCase("badSchema-key-outside.bdiff") {
      try schemaText { $0.replacing("\"primaryKey\":[0]", with: "\"primaryKey\":[3]") }
    },
    VectorCase("badSchema-rowid-hidden.bdiff") {
      try schemaText { $0.replacing("\"name\":\"line\"", with: "\"name\":\"_ROWID_\"") }
    },
    VectorCase("badSchema-unknown-field.bdiff") {
      try schemaText { $0.replacing("\"strict\":", with: "\"check\":\"1\",\"strict\":") }
    },
    // To Swift the Kelvin sign and the letter K are equal.
    VectorCase("badSchema-kelvin-sign.bdiff") {
      try schemaText { $0.replacing("\"primaryKey\"", with: "\"primary\u{212a}ey\"") }
    },
    VectorCase("badSchema-module-unknown.bdiff") { try virtualText("\"name\":\"fts5\"", "\"name\":\"fts4\"") },
    VectorCase("badSchema-module-field.bdiff") {
      try virtualText("\"unindexed\":[1]", "\"unindexed\":[1],\"content\":\"notes\"")
    },
    VectorCase("badSchema-module-unindexed.bdiff") { try virtualText("\"unindexed\":[1]", "\"unindexed\":[2]") },
    VectorCase("badSchema-module-coordinates.bdiff") { try virtualText("\"coordinates\":4", "\"coordinates\":3") },
    VectorCase("badSchema-module-other-coordinates.bdiff") { try virtualText("\"rtree\"", "\"rtree_i32\"") },
    VectorCase("badSchema-module-strict.bdiff") { try virtualText("\"strict\":false", "\"strict\":true") },
    VectorCase("badSchema-module-tokenizer.bdiff") { try virtualText("\"name\":\"unicode61\"", "\"name\":\"evil\"") },
    VectorCase("badSchema-module-tokenizer-option.bdiff") {
      try virtualText("\"value\":\"2\"", "\"value\":\"2'') , content=''x''\"")
    },
    VectorCase("badSchema-module-tokenizer-NUL.bdiff") { try virtualText("\"value\":\"-\"", "\"value\":\"\\u0000\"") },
    VectorCase("badSchema-module-prefix.bdiff") { try virtualText("\"prefixes\":[2,3]", "\"prefixes\":[2,0]") },
    VectorCase("badSchema-module-detail.bdiff") { try virtualText("\"detail\":\"column\"", "\"detail\":\"columns\"") },
    VectorCase("badSchema-module-options-missing.bdiff") {
      try virtualText("\"columnSizes\":true", "\"columnSize\":true")
    },
    VectorCase("badName-schema.bdiff") {
      try schemaText { $0.replacing("\"name\":\"notes\"", with: "\"name\":\"pragma_table_list\"") }
    },
    VectorCase("contradiction-annotations-too-few.bdiff") {
      try annotations(Annotations(origins: [Sample.id], runs: [.init(count: 4, origin: 0)]))
    },
    VectorCase("contradiction-annotations-too-many.bdiff") {
      try annotations(Annotations(origins: [Sample.id], runs: [.init(count: 6, origin: 0)]))
    },
    VectorCase("badAnnotations-later-than-the-diff.bdiff") {
      try annotations(Annotations(origins: [Sample.later], runs: [.init(count: 5, origin: 0)]))
    },
    VectorCase("badAnnotations-withdrawn-insert.bdiff") {
      try annotations(Annotations(origins: [Sample.id], runs: [.init(count: 5, origin: 0, kind: .withdraw)]))
    },
    VectorCase("badAnnotations-origin-outside.bdiff") {
      try annotations(Annotations(origins: [Sample.id], runs: [.init(count: 5, origin: 1)]))
    },
  ]
}
