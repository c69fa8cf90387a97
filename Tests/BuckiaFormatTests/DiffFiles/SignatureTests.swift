import BuckiaBytes
import Testing

@testable import BuckiaFormat

/// The data that a sender's signature covers, each of which could otherwise be changed on the way.
struct SignatureTests {
  /// A change of a manifest or a file that an attacker might want.
  struct Change<Subject>: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let make: @Sendable (inout Subject) -> Void

    init(_ what: String, _ make: @escaping @Sendable (inout Subject) -> Void) {
      testDescription = what
      self.make = make
    }
  }

  private static let changes: [Change<Manifest>] = [
    Change("the sender's replica") { $0.sender?.replica = .repeating(0x99) },
    Change("the sender's incarnation") { $0.sender?.incarnation = .repeating(0x99) },
    Change("the recipients") { $0.audience = .recipients(salt: .repeating(0x44), hashes: [.repeating(0x99)]) },
    Change("no recipients") { $0.audience = nil },
    Change("the id") { $0.id = Sample.later },
    Change("the predecessor") { $0.chain?.follows?.manifestSHA256 = .repeating(0x99) },
    Change("the place in the stream") { $0.chain?.sequence = 3 },
    Change("the stream") { $0.chain?.stream = .repeating(0x99) },
    Change("what was acknowledged") { $0.acknowledgements[0].through = 13 },
    Change("the dataset") { $0.dataset = .repeating(0x99) },
    Change("the kind") { $0.kind = .snapshot },
    Change("the definitions") { $0.schema = .repeating(0x99) },
    Change("the digest of a member") { $0.members[0].sha256 = .repeating(0x99) },
    Change("a rename") { $0.renames = [] },
  ]

  @Test(arguments: changes)
  func `a signature covers each field`(_ change: Change<Manifest>) throws {
    let signer = try Sample.signer()
    var manifest = Sample.fullManifest
    manifest.sender?.identity = signer.identity
    manifest.schema = .repeating(0x10)
    manifest.members = [Manifest.Member(name: "changeset", size: 1, sha256: .repeating(0x12))]
    let bytes = manifest.json.bytes()
    let signature = try signer.signature(of: bytes)
    #expect(signer.identity.hasSigned(ManifestSigner.message(bytes), signature))
    change.make(&manifest)
    let changed = manifest.json.bytes()
    #expect(changed != bytes)
    #expect(!signer.identity.hasSigned(ManifestSigner.message(changed), signature))
  }

  private static let fileChanges: [Change<FileSpec>] = [
    Change("the id of the predecessor") {
      $0.manifest.chain?.follows?.id = KSUID(timestamp: 107_608_045, payloadHigh: 1, payloadLow: 2)
    },
    Change("how many rows there are") { $0.manifest.states[0].rows += 1 },
    Change("the sum of the rows") { $0.manifest.states[0].digest = .repeating(0xac) },
    Change("the sums of parts") { $0.manifest.states[0].buckets = nil },
    Change("no sums") { $0.manifest.states = [] },
    Change("the rows that are asked for") { $0.manifest.requests[0].table = "album" },
    Change("of whom they are asked") { $0.manifest.requests[0].stream = .repeating(0x99) },
    Change("no rows asked for") { $0.manifest.requests = [] },
    Change("the rows that are sent again") { $0.manifest.resent[0].buckets = nil },
    Change("no rows sent again") { ($0.manifest.resent, $0.manifest.critical) = ([], []) },
    Change("how many rows are inserted") { $0.tables[0].inserted += 1 },
    Change("how many rows are updated") { $0.tables[0].updated = 0 },
    Change("how many rows are deleted") { $0.tables[0].deleted += 1 },
    Change("how many rows are withdrawn") { $0.tables[0].withdrawn = 1 },
    Change("a table less") { $0.tables.removeLast() },
  ]

  @Test(arguments: fileChanges)
  func `a signed file is refused after a change`(_ change: Change<FileSpec>) throws {
    let original = FileSpec(manifest: Sample.mending, isSigned: true)
    let signed = String(decoding: try ReadFile(original.packed()).manifestBytes, as: UTF8.self)
    var file = original
    file.corruptions = [.omit("manifest.sig"), .signature(over: signed)]
    #expect(refusal(of: try file.packed()) == nil)
    change.make(&file)
    let error = try #require(refusal(of: file.packed()))
    #expect(error.code == .badSignature, "\(error)")
  }

  @Test
  func `a manifest with another sender has another signature`() throws {
    let signer = try Sample.signer()
    let other = try ManifestSigner(seed: [UInt8](repeating: 8, count: 32))
    var manifest = Sample.fullManifest
    manifest.sender?.identity = signer.identity
    let signature = try signer.signature(of: manifest.json.bytes())
    manifest.sender?.identity = other.identity
    #expect(!other.identity.hasSigned(ManifestSigner.message(manifest.json.bytes()), signature))
  }
}
