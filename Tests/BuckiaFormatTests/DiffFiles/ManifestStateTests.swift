import Testing

@testable import BuckiaFormat

/// The state of a stream in a manifest.
@Suite struct ManifestStateTests {
  private static let digest = String(repeating: "ab", count: 16)

  private static func manifest() throws -> Manifest {
    var manifest = Manifest(id: Sample.id, chain: Manifest.Chain(stream: .repeating(5), sequence: 1))
    manifest.members = [Manifest.Member(name: "changeset", size: 0, sha256: .repeating(0))]
    manifest.states = [
      Manifest.State(
        table: "notes", rows: 7, digest: .repeating(0xab),
        buckets: [
          try #require(.init(0x01, beginning: [2, 3])), try #require(.init(0xff, beginning: [0, 0])),
        ]),
      Manifest.State(table: "tags", rows: 0, digest: .repeating(0)),
    ]
    return manifest
  }

  @Test func `a state is written and read unchanged`() throws {
    let manifest = try Self.manifest()
    guard case .object(let object) = manifest.json else { return #expect(Bool(false)) }
    #expect(
      object["state"]?.text()
        == #"[{"table":"notes","rows":7,"digest":"\#(Self.digest)","buckets":"010203ff0000"},"#
        + #"{"table":"tags","rows":0,"digest":"00000000000000000000000000000000"}]"#)
    #expect(try Manifest(parsing: manifest.json.bytes()) == manifest)
  }

  @Test(arguments: [
    ("\"rows\":7", "\"rows\":-7", "state[0].rows"),
    ("\"digest\":\"abab", "\"digest\":\"ab", "state[0].digest"),
    ("010203ff0000", "010203ff00", "state[0].buckets"),
    ("010203ff0000", "0102030100ff", "state[0].buckets"),
    ("010203ff0000", "ff0000010203", "state[0].buckets"),
    ("010203ff0000", "010203FF0000", "state[0].buckets"),
    ("\"rows\":7", "\"rows\":7,\"mood\":1", "state[0].mood"),
    ("\"table\":\"tags\"", "\"table\":\"NOTES\"", "state"),
    ("\"table\":\"tags\"", "\"table\":\"buckia_ledger\"", "state"),
    ("\"table\":\"tags\"", "\"table\":\"\"", "state"),
  ])
  func `a part of a state that violates its rule is named`(find: String, put: String, field: String) throws {
    let text = try Self.manifest().json.text()
    #expect(text.contains(find))
    let error = try #require(throws: DiffFileError.self) {
      try Manifest(parsing: Array(text.replacing(find, with: put).utf8))
    }
    #expect(error.code == .badManifest, "\(error)")
    #expect(error.description.hasPrefix("manifest.json: \"\(field)\" "), "\(error)")
  }

  @Test func `a diff without a stream has no state`() throws {
    var manifest = try Self.manifest()
    manifest.chain = nil
    #expect(throws: DiffFileError.self) { try Manifest(parsing: manifest.json.bytes()) }
  }
}

/// The requested and resent rows in a manifest.
@Suite struct ManifestRowsTests {
  private static func manifest() -> Manifest {
    var manifest = Manifest(
      id: Sample.id, critical: ["resent"], chain: Manifest.Chain(stream: .repeating(5), sequence: 1))
    manifest.members = [Manifest.Member(name: "changeset", size: 0, sha256: .repeating(0))]
    manifest.resent = [
      Manifest.Rows(table: "notes", buckets: [1, 0xfe]), Manifest.Rows(table: "tags", buckets: nil),
    ]
    manifest.requests = [Manifest.Rows(of: .repeating(7), table: "photo", buckets: [0])]
    return manifest
  }

  @Test func `requested and resent rows are read back unchanged`() throws {
    let manifest = Self.manifest()
    guard case .object(let object) = manifest.json else { return #expect(Bool(false)) }
    #expect(object["resent"]?.text() == #"[{"table":"notes","buckets":"01fe"},{"table":"tags"}]"#)
    #expect(
      object["requests"]?.text()
        == #"[{"stream":"07070707070707070707070707070707","table":"photo","buckets":"00"}]"#)
    #expect(try Manifest(parsing: manifest.json.bytes()) == manifest)
  }

  @Test(arguments: [
    ("\"01fe\"", "\"fe01\"", "resent[0].buckets"), ("\"01fe\"", "\"\"", "resent[0].buckets"),
    ("\"01fe\"", "\"0101\"", "resent[0].buckets"), ("\"01fe\"", "\"0\"", "resent[0].buckets"),
    ("\"table\":\"tags\"", "\"table\":\"Notes\"", "resent"),
    ("\"table\":\"tags\"", "\"table\":\"sqlite_x\"", "resent"),
    ("\"table\":\"photo\"", "\"table\":\"buckia_x\"", "requests"),
    ("\"stream\":\"0707", "\"stream\":\"07", "requests[0].stream"),
    ("\"critical\":[\"resent\"]", "\"critical\":[]", "resent"),
    ("\"kind\":\"delta\"", "\"kind\":\"snapshot\"", "resent"),
  ])
  func `a part that violates its rule is named`(find: String, put: String, field: String) throws {
    let text = Self.manifest().json.text()
    #expect(text.contains(find))
    let error = try #require(throws: DiffFileError.self) {
      try Manifest(parsing: Array(text.replacing(find, with: put).utf8))
    }
    #expect(error.code == .badManifest, "\(error)")
    #expect(error.description.hasPrefix("manifest.json: \"\(field)\" "), "\(error)")
  }
}
