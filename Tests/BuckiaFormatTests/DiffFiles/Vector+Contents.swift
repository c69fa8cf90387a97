import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

@testable import BuckiaFormat

// The changes, and whether everything agrees.

extension Vector {
  /// A file with one INSERT into a table of one column.
  private static func single(
    _ table: String, format: ChangesetFormat = .changeset, before: [TableChanges] = [], claimed: String? = nil
  ) -> FileSpec {
    FileSpec(
      tables: [Manifest.Table(name: claimed ?? table, columns: 1, inserted: 1)], schema: nil,
      changes: before + [TableChanges(table, key: [1], format: format, [.insert([1])])])
  }

  /// The samples' changeset, with a fault.
  private static func spoilt(_ change: (inout [UInt8]) -> Void) -> FileSpec {
    var bytes = Sample.changeset
    change(&bytes)
    return FileSpec(corruptions: [.content(of: "changeset", bytes)])
  }

  /// A file with one UPDATE of `notes`.
  private static func update(old: [TableChanges.Cell], new: [TableChanges.Cell]) -> FileSpec {
    FileSpec(
      tables: [.notes(inserted: 0, deleted: 0)], schema: [Sample.notes],
      changes: [TableChanges("notes", key: [1, 0, 0], [.update(old: old, new: new)])])
  }

  static let changesets = [
    Vector(
      "an UPDATE without an old value", .badChangeset,
      update(old: [3, .unchanged, .unchanged], new: [.unchanged, "new", .unchanged])),
    Vector(
      "an UPDATE without one of two old values", .badChangeset,
      update(old: [3, "old", .unchanged], new: [.unchanged, "new", nil])),
    Vector("a table of SQLite's", .badName, single("sqlite_sequence")),
    Vector("a table of ours", .badName, single("Buckia_Ledger")),
    Vector(
      "a header without changes", .badName, single("notes", before: [TableChanges("sqlite_schema", key: [1], [])])),
    Vector("a table that the manifest does not name", .badName, single("sqlite_sequence", claimed: "notes")),
    Vector("a patchset", .badChangeset, single("notes", format: .patchset)),
    Vector("changes that end early", .badChangeset, spoilt { $0.removeLast() }),
    Vector("no changeset", .badChangeset, spoilt { $0 = Array("no changeset".utf8) }),
    Vector("a table name that is not UTF-8", .badChangeset, spoilt { $0 = $0.map { $0 == 0xc3 ? 0x20 : $0 } }),
  ]

  private static func annotated(_ origins: [KSUID], _ runs: Annotations.Run...) -> FileSpec {
    FileSpec(annotations: Annotations(origins: origins, runs: runs))
  }

  static let contradictions = [
    Vector("more INSERTs", .contradiction, FileSpec(tables: [.notes(inserted: 3), .log()])),
    Vector("fewer UPDATEs", .contradiction, FileSpec(tables: [.notes(updated: 0), .log()])),
    Vector("more DELETEs", .contradiction, FileSpec(tables: [.notes(deleted: 2), .log()])),
    Vector("a withdrawal", .contradiction, FileSpec(tables: [.notes(withdrawn: 1), .log()])),
    Vector("more columns", .contradiction, FileSpec(tables: [.notes(columns: 4), .log()])),
    Vector("another key", .contradiction, FileSpec(tables: [.notes(), .log(key: .primary)])),
    Vector("a table missing", .contradiction, FileSpec(tables: [.notes()])),
    Vector(
      "a table more", .contradiction, FileSpec(tables: [.notes(), .log(), Manifest.Table(name: "more", columns: 1)])),
    Vector("a table in another case", .contradiction, FileSpec(tables: [.notes("Notes"), .log()])),
    Vector(
      "another schema", .contradiction,
      FileSpec(corruptions: [
        .replace("\"schema\":", by: "\"schema\":\"\(Vector.zeros)\",\"x\":", in: "manifest.json")
      ])),
    Vector("a table without a definition", .contradiction, FileSpec(schema: [Sample.notes])),
    Vector(
      "a definition with more columns", .contradiction,
      FileSpec(schema: [
        Sample.notes,
        TableDefinition(
          name: Sample.log.name, columns: [ColumnDefinition(name: "line"), ColumnDefinition(name: "more")]),
      ])),
    Vector(
      "a definition with another key", .contradiction,
      FileSpec(schema: [
        TableDefinition(
          name: "notes",
          columns: [ColumnDefinition(name: "id"), ColumnDefinition(name: "title"), ColumnDefinition(name: "body")],
          primaryKey: [1]),
        Sample.log,
      ])),
    Vector("annotations for too few", .contradiction, annotated([Sample.id], .init(count: 4, origin: 0))),
    Vector("annotations for too many", .contradiction, annotated([Sample.id], .init(count: 6, origin: 0))),
    Vector("an origin in the future", .badAnnotations, annotated([Sample.later], .init(count: 5, origin: 0))),
    Vector(
      "an INSERT that is a withdrawal", .badAnnotations,
      annotated([Sample.id], .init(count: 5, origin: 0, kind: .withdraw))),
    Vector("an origin outside", .badAnnotations, annotated([Sample.id], .init(count: 5, origin: 1))),
  ]
}
