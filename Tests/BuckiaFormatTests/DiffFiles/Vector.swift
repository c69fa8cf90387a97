import BuckiaBytes
import Testing

@testable import BuckiaFormat

/// A diff file as a literal, and the expected result of opening it.
struct Vector: CustomTestStringConvertible, Sendable {
  /// The special feature of the file.
  let name: String
  /// The code of the error; nil for a valid file.
  let expected: DiffFileError.Code?
  let file: FileSpec

  init(_ name: String, _ expected: DiffFileError.Code? = nil, _ file: FileSpec) {
    self.name = name
    self.expected = expected
    self.file = file
  }

  var testDescription: String { name }

  static let refused =
    container + members + json + manifests + schemas + modules + statements + changesets + contradictions
    + refusedShares

  /// Valid files.
  static let accepted = ordinary + acceptedShares

  private static let ordinary = [
    Vector("minimal", nil, FileSpec()),
    Vector(
      "full and signed", nil,
      FileSpec(
        manifest: Sample.fullManifest, tables: [.notes(withdrawn: 1), .log()], annotations: Sample.annotations,
        files: [("a.txt", ""), ("b/photo.txt", "not really")], isSigned: true)),
    Vector(
      "acknowledgement", nil,
      FileSpec(manifest: Manifest(id: Sample.id, kind: .ack), tables: [], schema: nil, changes: [])),
    Vector(
      "virtual tables", nil,
      FileSpec(
        tables: [
          Manifest.Table(name: "places", columns: 6, inserted: 1),
          Manifest.Table(name: "words", columns: 3, key: .rowid, inserted: 1),
        ], schema: Sample.virtual, changes: Sample.virtualChanges)),
    Vector("the schema of an author", nil, FileSpec(author: Sample.author)),
  ]

  /// Files that our writer would make differently, but with the same contents.
  static let acceptedAsMinimal = [
    Vector("packed by another program", nil, FileSpec()),
    Vector("a window that is larger than it must be", nil, FileSpec(corruptions: [.window(log: 23)])),
    Vector(
      "white space in the manifest", nil,
      FileSpec(corruptions: [.replace(",\"kind\"", by: ",\n \"kind\"", in: "manifest.json")])),
  ]
}

// MARK: zstd and tar

extension Vector {
  private static let skippableFrame: [UInt8] = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0]

  private static let container = [
    Vector("nothing", .truncated, FileSpec(corruptions: [.length(0)])),
    Vector("the last byte is missing", .truncated, FileSpec(corruptions: [.length(-1)])),
    Vector("one end block", .truncated, FileSpec(corruptions: [.end(zeros: 512)])),
    Vector("a text", .notZstd, FileSpec(corruptions: [.text("Dear Anna, the diff is attached.\n")])),
    Vector("a bare archive", .notZstd, FileSpec(corruptions: [.uncompressed])),
    Vector("a skippable frame before", .notZstd, FileSpec(corruptions: [.before(skippableFrame)])),
    Vector("no checksum", .badZstd, FileSpec(corruptions: [.noChecksum])),
    Vector("a window of 16 MiB", .badZstd, FileSpec(corruptions: [.window(log: 24)])),
    Vector("a dictionary", .badZstd, FileSpec(corruptions: [.flipBits(0x01, at: 4)])),
    Vector("the unused bit", .badZstd, FileSpec(corruptions: [.flipBits(0x10, at: 4)])),
    Vector("the reserved bit", .badZstd, FileSpec(corruptions: [.flipBits(0x08, at: 4)])),
    Vector("a wrong checksum", .badZstd, FileSpec(corruptions: [.flipBits(0x01, at: -1)])),
    Vector("a byte behind the frame", .trailingData, FileSpec(corruptions: [.after([0])])),
    Vector("a second frame", .trailingData, FileSpec(corruptions: [.twice])),
    Vector("a skippable frame behind", .trailingData, FileSpec(corruptions: [.after(skippableFrame)])),
    Vector("a third end block", .trailingData, FileSpec(corruptions: [.end(zeros: 1536)])),
    Vector("an end that is not zero", .badTarPadding, FileSpec(corruptions: [.endsInOne])),
    Vector("an archive of zeros", .badTarHeader, FileSpec(corruptions: [.allZeros(1 << 20)])),
  ]

  private static let members = [
    Vector(
      "a manifest beyond its limit", .tooLarge,
      FileSpec(corruptions: [.claimedSize(of: "manifest.json", Int64(DiffFileLimits.manifestBytes) + 1)])),
    Vector(
      "a changeset of 8 GiB in a few bytes", .tooLarge,
      FileSpec(
        tables: [], changes: [],
        corruptions: [
          .replace("\"changeset\",\"size\":0", by: "\"changeset\",\"size\":8589934591", in: "manifest.json")
        ])),
    Vector("another mode", .badTarHeader, FileSpec(corruptions: [.header(of: "changeset", at: 105, is: "7")])),
    Vector("a link", .badTarHeader, FileSpec(corruptions: [.header(of: "changeset", at: 156, is: "2")])),
    Vector("a pax header", .badTarHeader, FileSpec(corruptions: [.header(of: "changeset", at: 156, is: "x")])),
    Vector(
      "a header of GNU tar", .badTarHeader, FileSpec(corruptions: [.header(of: "changeset", at: 257, is: "ustar  \0")])),
    Vector("a larger size", .badTarHeader, FileSpec(corruptions: [.claimedSize(of: "changeset", 9_999)])),
    Vector(
      "a wrong checksum in a header", .badTarHeader,
      FileSpec(corruptions: [.header(of: "changeset", at: 150, is: "9")])),
    Vector("the manifest second", .badTarHeader, FileSpec(corruptions: [.swap("manifest.json", "schema.json")])),
    Vector(
      "the changeset before the schema", .badTarHeader, FileSpec(corruptions: [.swap("schema.json", "changeset")])),
    Vector("no schema", .badTarHeader, FileSpec(corruptions: [.omit("schema.json")])),
    Vector("the schema twice", .badTarHeader, FileSpec(corruptions: [.double("schema.json")])),
    Vector(
      "a path that leaves the folder", .badTarHeader,
      FileSpec(corruptions: [.rename("changeset", to: "../changeset")])),
    Vector("one member more", .badTarPadding, FileSpec(corruptions: [.add("files/extra", [1])])),
    Vector("padding that is not zero", .badTarPadding, FileSpec(corruptions: [.padding(of: "changeset")])),
    Vector(
      "a changeset with another byte", .digestMismatch, FileSpec(corruptions: [.flip(byte: -1, of: "changeset")])),
    Vector(
      "a schema with another byte", .digestMismatch, FileSpec(corruptions: [.flip(byte: 20, of: "schema.json")])),
    Vector(
      "an attachment with another byte", .digestMismatch,
      FileSpec(files: [("a", "text")], corruptions: [.flip(byte: 0, of: "files/a")])),
  ]
}
