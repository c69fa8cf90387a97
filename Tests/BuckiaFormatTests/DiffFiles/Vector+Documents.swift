import BuckiaBytes
import SQLiteSchemas

@testable import BuckiaFormat

// The documents in a file.

extension Vector {
  /// A digest of no particular content.
  static let zeros = String(repeating: "0", count: 64)

  /// A file whose manifest has another text in one place.
  private static func manifest(_ find: String, _ put: String) -> FileSpec {
    FileSpec(corruptions: [.replace(find, by: put, in: "manifest.json")])
  }

  static let json = [
    Vector("a name twice", .badJSON, manifest("{\"format\"", "{\"kind\":\"ack\",\"format\"")),
    Vector("a name twice, once escaped", .badJSON, manifest("{\"format\"", "{\"k\\u0069nd\":\"ack\",\"format\"")),
    Vector("a byte order mark", .badJSON, manifest("{\"format\"", "\u{feff}{\"format\"")),
    Vector("half of a surrogate pair", .badJSON, manifest("{\"format\"", "{\"x\":\"\\ud800\",\"format\"")),
    Vector("a fraction", .badJSON, manifest("\"format\":1", "\"format\":1.0")),
    Vector(
      "seventeen levels", .badJSON,
      manifest("{\"format\"", "{\"x\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]],\"format\"")),
    Vector("something behind the document", .badJSON, manifest("]}", "]}{}")),
  ]

  /// A file with attachments of these names.
  private static func attached(_ names: String...) -> FileSpec { FileSpec(files: names.map { ($0, "x") }) }

  static let manifests = [
    Vector("format 2", .unsupportedFormat, manifest("\"format\":1", "\"format\":2")),
    Vector(
      "a critical field of a later version", .unsupportedFormat,
      FileSpec(manifest: Manifest(id: Sample.id, critical: ["authority"]))),
    Vector("no id", .badManifest, manifest("\"id\":", "\"idea\":")),
    Vector("a digest in capitals", .badManifest, manifest("\"sha256\":\"", "\"sha256\":\"AB")),
    Vector("a count below zero", .badManifest, FileSpec(tables: [.notes(inserted: -1), .log()])),
    Vector("a table twice", .badManifest, FileSpec(tables: [.notes(), .log("NOTES")])),
    Vector("an unknown member", .badManifest, manifest("\"name\":\"changeset\"", "\"name\":\"changes\"")),
    Vector(
      "a member twice", .badManifest,
      manifest(
        "{\"name\":\"changeset\"",
        "{\"name\":\"schema.json\",\"size\":0,\"sha256\":\"\(zeros)\"},{\"name\":\"changeset\"")),
    Vector(
      "a successor of itself", .badManifest,
      FileSpec(
        manifest: Manifest(
          id: Sample.id,
          chain: .init(
            stream: .repeating(2), sequence: 2, follows: .init(id: Sample.id, manifestSHA256: .repeating(1)))))),

    Vector(
      "a rename in a table of ours", .badManifest,
      FileSpec(
        manifest: Manifest(
          id: Sample.id, renames: [ColumnRename(table: "buckia_ledger", from: "state", to: "mood")]))),
    Vector(
      "a rename to another case", .badManifest,
      FileSpec(manifest: Manifest(id: Sample.id, renames: [ColumnRename(table: "notes", from: "text", to: "TEXT")]))),
    Vector(
      "a rename twice", .badManifest,
      FileSpec(
        manifest: Manifest(
          id: Sample.id,
          renames: [
            ColumnRename(table: "notes", from: "text", to: "body"),
            ColumnRename(table: "NOTES", from: "text", to: "body"),
          ]))),
    Vector(
      "a rename that says more", .badManifest,
      manifest(
        "\"tables\":[", "\"renames\":[{\"table\":\"a\",\"from\":\"b\",\"to\":\"c\",\"why\":1}],\"tables\":[")),

    Vector("a path up", .badManifest, attached("a/../../b")),
    // To Swift a slash and a following combining mark are one character; to a file system they are two.
    Vector("a path up before a combining mark", .badManifest, attached("../\u{301}a")),
    Vector("a backslash before a combining mark", .badManifest, attached("a\\\u{301}b")),
    Vector("an absolute path", .badManifest, attached("/etc/passwd")),
    Vector("a control character in a path", .badManifest, attached("a\u{1b}[31m")),
    Vector("a path that turns around", .badManifest, attached("a\u{202e}gpj.exe")),
    Vector("an invisible character in a path", .badManifest, attached("a\u{200d}b")),
    Vector("an attachment twice", .badManifest, attached("a", "a")),
    Vector("an attachment that is a folder", .badManifest, attached("a", "a-b", "a/b")),

    Vector(
      "a signature by another key", .badSignature,
      FileSpec(
        manifest: Manifest(id: Sample.id, sender: .init(identity: .repeating(1))), corruptions: [.signature()])),
    Vector(
      "a signature over another manifest", .badSignature,
      FileSpec(isSigned: true, corruptions: [.omit("manifest.sig"), .signature(over: "{}")])),
    Vector("a signature without a signer", .badSignature, FileSpec(corruptions: [.signature()])),
    Vector(
      "the signature taken away", .badSignature, FileSpec(isSigned: true, corruptions: [.omit("manifest.sig")])),
    Vector(
      "a signer who does not sign", .badSignature,
      FileSpec(manifest: Manifest(id: Sample.id, sender: .init(identity: .repeating(1))))),
  ]

  /// A file whose table definitions have another text in one place.
  private static func schema(_ find: String, _ put: String) -> FileSpec {
    FileSpec(corruptions: [.replace(find, by: put, in: "schema.json")])
  }

  static let schemas = [
    Vector("a column twice", .badSchema, schema("\"name\":\"body\"", "\"name\":\"TITLE\"")),
    Vector("an expression as default", .badSchema, schema("\"'new'\"", "\"randomblob(9)\"")),
    Vector("a key outside", .badSchema, schema("\"primaryKey\":[0]", "\"primaryKey\":[3]")),
    Vector("a column that hides the rowid", .badSchema, schema("\"name\":\"line\"", "\"name\":\"_ROWID_\"")),
    Vector("a CHECK", .badSchema, schema("\"primaryKey\":", "\"check\":\"1\",\"primaryKey\":")),
    // To Swift the Kelvin sign and the letter K are equal.
    Vector("a Kelvin sign", .badSchema, schema("\"primaryKey\"", "\"primary\u{212a}ey\"")),
    Vector("a pragma's name", .badName, schema("\"name\":\"notes\"", "\"name\":\"pragma_table_list\"")),
  ]

  /// A file with virtual tables whose definitions have another text in one place.
  private static func module(_ find: String, _ put: String) -> FileSpec {
    FileSpec(
      tables: [
        Manifest.Table(name: "places", columns: 6, inserted: 1),
        Manifest.Table(name: "words", columns: 3, key: .rowid, inserted: 1),
      ], schema: Sample.virtual, changes: Sample.virtualChanges,
      corruptions: [.replace(find, by: put, in: "schema.json")])
  }

  static let modules = [
    Vector("an unknown module", .badSchema, module("\"name\":\"fts5\"", "\"name\":\"fts4\"")),
    Vector(
      "a module's unknown field", .badSchema,
      module("\"unindexed\":[1]", "\"unindexed\":[1],\"content\":\"notes\"")),
    Vector("an unindexed column outside", .badSchema, module("\"unindexed\":[1]", "\"unindexed\":[2]")),
    Vector("three coordinates", .badSchema, module("\"coordinates\":4", "\"coordinates\":3")),
    Vector("coordinates of another type", .badSchema, module("\"rtree\"", "\"rtree_i32\"")),
    Vector("a virtual table that is strict", .badSchema, module("\"columns\":", "\"strict\":true,\"columns\":")),
    Vector("an unknown tokenizer", .badSchema, module("\"name\":\"unicode61\"", "\"name\":\"evil\"")),
    Vector(
      "SQL in a tokenizer's option", .badSchema, module("\"value\":\"2\"", "\"value\":\"2'') , content=''x''\"")),
    Vector("a NUL in a tokenizer's option", .badSchema, module("\"value\":\"-\"", "\"value\":\"\\u0000\"")),
    Vector("a prefix of no length", .badSchema, module("\"prefixes\":[2,3]", "\"prefixes\":[2,0]")),
    Vector("an unknown detail", .badSchema, module("\"detail\":\"column\"", "\"detail\":\"columns\"")),
    Vector("a missing option", .badSchema, module("\"columnSizes\":true", "\"columnSize\":true")),
  ]
}
