import BuckiaKSUID
import SQLiteChangesets
import SQLiteSchemas

@testable import BuckiaDiffFiles

/// One vector: a file, what opening it must come to, and how it is made.
struct VectorCase: CustomStringConvertible, Sendable {
  /// The file's name; up to the first `-` it is the expected code, or `good`.
  let name: String
  let make: @Sendable () throws -> [UInt8]

  init(_ name: String, _ make: @escaping @Sendable () throws -> [UInt8]) {
    self.name = name
    self.make = make
  }

  var description: String { name }
  var expectation: String { String(name.prefix { $0 != "-" && $0 != "/" }) }

  static let all = good + zstd + tar + json + manifests + contents
}

extension VectorCase {
  static func written(
    _ draft: @autoclosure () throws -> DiffFileDraft, changeset: [UInt8] = Sample.changeset, signed: Bool = false
  ) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    var writer = DiffFileWriter()
    if signed { writer.signer = try Sample.signer() }
    try writer.write(draft(), changeset: ChangesetSpool(changeset), to: folder.file("vector"))
    return try bytes(at: folder.file("vector"))
  }

  static func changed(_ bytes: [UInt8], _ change: (inout [UInt8]) -> Void) -> [UInt8] {
    var bytes = bytes
    change(&bytes)
    return bytes
  }

  private static let good = [
    VectorCase("good-minimal.bdiff") { try written(Sample.plainDraft) },
    VectorCase("good-full-signed.bdiff") { try written(Sample.fullDraft(), signed: true) },
    VectorCase("good-ack.bdiff") {
      try written(DiffFileDraft(manifest: Manifest(id: Sample.id, kind: .ack), schema: .absent), changeset: [])
    },
    VectorCase("good-virtual-tables.bdiff") {
      try written(
        DiffFileDraft(manifest: Manifest(id: Sample.id), schema: .included(Sample.virtual)),
        changeset: Sample.virtualChangeset)
    },
    VectorCase("good-packed-by-another-program.bdiff") { try Forge().file() },
    VectorCase("good/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff") { try written(Sample.plainDraft) },
  ]

  private static let skippableFrame: [UInt8] = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0]

  private static let zstd = [
    VectorCase("truncated-empty.bdiff") { [] },
    VectorCase("truncated-last-byte.bdiff") { Array(try Forge().file().dropLast()) },
    VectorCase("truncated-one-end-block.bdiff") {
      var forge = try Forge()
      forge.end = [UInt8](repeating: 0, count: 512)
      return try forge.file()
    },
    VectorCase("notZstd-text.bdiff") { Array("Dear Anna, the diff is attached.\n".utf8) },
    VectorCase("notZstd-tar.bdiff") { try Forge().tar(try Forge().archive) },
    VectorCase("notZstd-skippable-frame-first.bdiff") { skippableFrame + (try Forge().file()) },
    VectorCase("badZstd-no-checksum.bdiff") {
      let forge = try Forge()
      return try Forge.pack(forge.tar(forge.archive), checksum: false)
    },
    VectorCase("badZstd-window-16-MiB.bdiff") {
      let forge = try Forge()
      return try Forge.pack(forge.tar(forge.archive), windowLog: 24)
    },
    VectorCase("badZstd-dictionary.bdiff") { changed(try Forge().file()) { $0[4] |= 1 } },
    VectorCase("badZstd-unused-bit.bdiff") { changed(try Forge().file()) { $0[4] |= 0x10 } },
    VectorCase("badZstd-wrong-checksum.bdiff") { changed(try Forge().file()) { $0[$0.count - 1] ^= 1 } },
    VectorCase("sealMismatch-window-grown.bdiff") { changed(try written(Sample.plainDraft)) { $0[5] += 8 } },
    VectorCase("trailingData-byte.bdiff") { try Forge().file() + [0] },
    VectorCase("trailingData-second-frame.bdiff") { try Forge().file() + Forge().file() },
    VectorCase("trailingData-skippable-frame.bdiff") { try Forge().file() + skippableFrame },
    VectorCase("trailingData-third-end-block.bdiff") {
      var forge = try Forge()
      forge.end += [UInt8](repeating: 0, count: 512)
      return try forge.file()
    },
    VectorCase("tooLarge-manifest.bdiff") {
      try Forge().file {
        $0[0].header = TarHeader.bytes(name: "manifest.json", size: Int64(DiffFileLimits.manifestBytes) + 1)
      }
    },
    VectorCase("tooLarge-bomb.bdiff") {
      var forge = try Forge()
      forge.changeset = []
      return try forge.file(manifestText: {
        $0.replacing("\"changeset\",\"size\":0", with: "\"changeset\",\"size\":8589934591")
      })
    },
    VectorCase("badTarHeader-zeros.bdiff") { try Forge.pack([UInt8](repeating: 0, count: 1 << 20)) },
  ]

  /// The members with one byte of the changeset's header changed.
  private static func header(_ change: @Sendable (inout [UInt8]) -> Void) throws -> [UInt8] {
    try Forge().file { members in change(&members[2].header) }
  }

  private static let tar = [
    VectorCase("badTarHeader-mode.bdiff") { try header { $0[105] = UInt8(ascii: "7") } },
    VectorCase("badTarHeader-link.bdiff") { try header { $0[156] = UInt8(ascii: "2") } },
    VectorCase("badTarHeader-gnu.bdiff") {
      try header { $0.replaceSubrange(257..<265, with: Array("ustar  \0".utf8)) }
    },
    VectorCase("badTarHeader-pax.bdiff") { try header { $0[156] = UInt8(ascii: "x") } },
    VectorCase("badTarHeader-size.bdiff") { try header { $0[134] ^= 1 } },
    VectorCase("badTarHeader-checksum.bdiff") { try header { $0[150] ^= 1 } },
    VectorCase("badTarHeader-manifest-not-first.bdiff") { try Forge().file { $0.swapAt(0, 1) } },
    VectorCase("badTarHeader-order.bdiff") { try Forge().file { $0.swapAt(1, 2) } },
    VectorCase("badTarHeader-member-missing.bdiff") { try Forge().file { _ = $0.remove(at: 1) } },
    VectorCase("badTarPadding-member-added.bdiff") { try Forge().file { $0.append(.init("files/extra", [1])) } },
    VectorCase("badTarHeader-member-repeated.bdiff") { try Forge().file { $0.insert($0[1], at: 1) } },
    VectorCase("badTarHeader-path.bdiff") { try Forge().file { $0[2] = .init("../changeset", $0[2].bytes) } },
    VectorCase("badTarPadding-member.bdiff") { try Forge().file { $0[2].padding[0] = 1 } },
    VectorCase("badTarPadding-end.bdiff") {
      var forge = try Forge()
      forge.end[1023] = 1
      return try forge.file()
    },
  ]

  private static func text(_ change: @escaping (String) -> String) throws -> [UInt8] {
    try Forge().file(manifestText: change)
  }

  private static let json = [
    VectorCase("badJSON-duplicate-name.bdiff") { try text { "{\"kind\":\"ack\"," + $0.dropFirst() } },
    VectorCase("badJSON-duplicate-name-escaped.bdiff") { try text { "{\"k\\u0069nd\":\"ack\"," + $0.dropFirst() } },
    VectorCase("badJSON-byte-order-mark.bdiff") { try text { "\u{feff}" + $0 } },
    VectorCase("badJSON-lone-surrogate.bdiff") { try text { "{\"x\":\"\\ud800\"," + $0.dropFirst() } },
    VectorCase("badJSON-fraction.bdiff") { try text { $0.replacing("\"format\":1", with: "\"format\":1.0") } },
    VectorCase("badJSON-too-deep.bdiff") {
      try text {
        "{\"x\":" + String(repeating: "[", count: 16) + String(repeating: "]", count: 16) + "," + $0.dropFirst()
      }
    },
    VectorCase("badJSON-trailing.bdiff") { try text { $0 + "{}" } },
  ]

  private static func manifest(_ change: (inout Manifest) throws -> Void) throws -> [UInt8] {
    var forge = try Forge()
    try change(&forge.manifest)
    return try forge.file()
  }

  private static func attached(_ names: String...) throws -> [UInt8] {
    var forge = try Forge()
    forge.files = names.map { ($0, [1]) }
    return try forge.file()
  }

  private static let manifests = [
    VectorCase("idMismatch/0ujtsYcgvSTl8PAuAdqWYSMnLOw.bdiff") { try Forge().file() },
    VectorCase("unsupportedFormat-2.bdiff") { try text { $0.replacing("\"format\":1", with: "\"format\":2") } },
    VectorCase("unsupportedFormat-critical.bdiff") { try manifest { $0.critical = ["authority"] } },
    VectorCase("badManifest-rename-own-table.bdiff") {
      try manifest { $0.renames = [ColumnRename(table: "buckia_ledger", from: "state", to: "mood")] }
    },
    VectorCase("badManifest-rename-to-itself.bdiff") {
      try manifest { $0.renames = [ColumnRename(table: "notes", from: "text", to: "TEXT")] }
    },
    VectorCase("badManifest-rename-twice.bdiff") {
      try manifest {
        $0.renames = [
          ColumnRename(table: "notes", from: "text", to: "body"),
          ColumnRename(table: "NOTES", from: "text", to: "body"),
        ]
      }
    },
    VectorCase("badManifest-rename-more.bdiff") {
      try text {
        $0.replacing(
          "\"tables\":[", with: "\"renames\":[{\"table\":\"a\",\"from\":\"b\",\"to\":\"c\",\"why\":1}],\"tables\":[")
      }
    },
    VectorCase("badManifest-no-id.bdiff") { try text { $0.replacing("\"id\":", with: "\"idea\":") } },
    VectorCase("badManifest-table-twice.bdiff") { try manifest { $0.tables[1].name = "NOTES" } },
    VectorCase("badManifest-uppercase-digest.bdiff") {
      try text { $0.replacing("\"sha256\":\"", with: "\"sha256\":\"AB") }
    },
    VectorCase("badManifest-negative-count.bdiff") { try manifest { $0.tables[0].inserted = -1 } },
    VectorCase("badManifest-unknown-member.bdiff") {
      try text { $0.replacing("\"name\":\"changeset\"", with: "\"name\":\"changes\"") }
    },
    VectorCase("badManifest-member-twice.bdiff") {
      var forge = try Forge()
      let manifest = forge.completeManifest
      forge.manifest = manifest
      return try forge.file(manifestText: { text in
        let last = manifest.members[1].json.text()
        return text.replacing(last, with: last + "," + last)
      })
    },
    VectorCase("badManifest-path-up.bdiff") { try attached("a/../../b") },
    // To Swift a slash and the combining mark behind it are one character; to a file system they are not.
    VectorCase("badManifest-path-up-before-combining-mark.bdiff") { try attached("../\u{301}a") },
    VectorCase("badManifest-path-backslash-before-combining-mark.bdiff") { try attached("a\\\u{301}b") },
    VectorCase("badManifest-path-absolute.bdiff") { try attached("/etc/passwd") },
    VectorCase("badManifest-path-control-character.bdiff") { try attached("a\u{1b}[31m") },
    VectorCase("badManifest-path-right-to-left.bdiff") { try attached("a\u{202e}gpj.exe") },
    VectorCase("badManifest-attachment-twice.bdiff") { try attached("a", "a") },
    VectorCase("badManifest-attachment-and-folder.bdiff") { try attached("a", "a-b", "a/b") },
    VectorCase("badManifest-follows-itself.bdiff") {
      try manifest {
        let follows = Manifest.Chain.Predecessor(id: Sample.id, manifestSHA256: try Sample.fixed(1))
        $0.chain = .init(stream: try Sample.fixed(2), sequence: 2, follows: follows)
      }
    },
    VectorCase("badSignature-other-key.bdiff") {
      var forge = try Forge()
      forge.manifest.sender = .init(identity: try Sample.fixed(1))
      let signature = try Sample.signer().signature(of: forge.completeManifest.json.bytes())
      return try forge.file { $0.insert(.init("manifest.sig", signature), at: 1) }
    },
    VectorCase("badSignature-other-manifest.bdiff") {
      var forge = try Forge()
      forge.manifest.sender = .init(identity: try Sample.signer().identity)
      let signature = try Sample.signer().signature(of: Array("{}".utf8))
      return try forge.file { $0.insert(.init("manifest.sig", signature), at: 1) }
    },
    VectorCase("badSignature-nobody-named.bdiff") {
      let forge = try Forge()
      let signature = try Sample.signer().signature(of: forge.completeManifest.json.bytes())
      return try forge.file { $0.insert(.init("manifest.sig", signature), at: 1) }
    },
  ]
}
