import BuckiaKSUID
import Foundation
import SQLiteChangesets
import SQLiteSchemas
import Testing

@testable import BuckiaDiffFiles
import TestSupport

@Suite struct RoundTripTests {
  @Test func `What is written is read again`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file(DiffFileName.diff(Sample.id))
    let written = try DiffFileWriter().write(
      Sample.plainDraft, changeset: ChangesetSpool(Sample.changeset), to: path)
    let diff = try DiffFile.verified(at: path)
    #expect(diff.manifest == written.manifest)
    #expect(diff.manifest.tables == Sample.tables)
    #expect(diff.manifestDigest == written.manifestDigest)
    #expect(diff.fileDigest == written.fileDigest)
    #expect(diff.fileBytes == written.bytes)
    #expect(diff.schema == Sample.schema)
    #expect(diff.annotations == nil)
    #expect(diff.signature == .unsigned)
    #expect(diff.isSealed == true)
    #expect(try diff.changeset.bytes() == Sample.changeset)
    #expect(try FileDigest.sha256(at: path).sha256 == written.fileDigest)
    #expect(try folder.names == [DiffFileName.diff(Sample.id)])
  }

  @Test func `Every field, member and unknown field survives`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file(DiffFileName.diff(Sample.id))
    var writer = DiffFileWriter()
    writer.signer = try Sample.signer()
    writer.level = 19
    let draft = try Sample.fullDraft()
    try writer.write(draft, changeset: ChangesetSpool(Sample.changeset), to: path)
    let diff = try DiffFile.verified(at: path)
    var expected = draft.manifest
    expected.schema = diff.manifest.schema
    expected.members = diff.manifest.members
    expected.tables = Sample.tables
    expected.tables[0].withdrawn = 1
    #expect(diff.manifest == expected)
    #expect(
      diff.manifest.members.map(\.name) == [
        "schema.json", "changeset", "annotations", "files/a.txt", "files/b/photo.txt",
      ])
    #expect(diff.signature == .signed(by: try Sample.signer().identity))
    #expect(diff.annotations == draft.annotations)
    #expect(diff.attachments.map(\.name) == ["a.txt", "b/photo.txt"])
    #expect(diff.attachments.map(\.byteCount) == [0, 10])
    let photo = try diff.attachments[1].withBytes { $0.array(0..<$0.byteCount) }
    #expect(photo == Array("not really".utf8))
    #expect(diff.manifest.audience?.addresses([UInt8](repeating: 9, count: 32)) == true)
    #expect(diff.manifest.audience?.addresses([UInt8](repeating: 8, count: 32)) == false)
  }

  @Test func `A diff without changes, schema or sender can travel`() throws {
    let folder = try TemporaryFolder()
    let draft = DiffFileDraft(manifest: Manifest(id: Sample.id, kind: .ack), schema: .absent)
    try DiffFileWriter().write(draft, changeset: ChangesetSpool(), to: folder.file("ack"))
    let diff = try DiffFile.verified(at: folder.file("ack"), name: .ifNamedByID)
    #expect(diff.manifest.tables == [])
    #expect(diff.changeset.count == 0)
    #expect(diff.schema == nil)
  }

  @Test func `A known schema is only named`() throws {
    let folder = try TemporaryFolder()
    let digest = RunningDigest.of(try SchemaDocument.bytes(Sample.schema))
    var draft = DiffFileDraft(manifest: Manifest(id: Sample.id), schema: .known(digest))
    draft.tablesByRowID = [TableName(Sample.log.name)]
    try DiffFileWriter().write(draft, changeset: ChangesetSpool(Sample.changeset), to: folder.file("known"))
    let diff = try DiffFile.verified(at: folder.file("known"), name: .ifNamedByID)
    #expect(diff.manifest.schema == digest)
    #expect(diff.manifest.tables[1].key == .rowid)
    #expect(diff.schema == nil)
  }

  @Test(arguments: [1, 100, 200, 212, 213, 214, 10_000])
  func `A long changeset is split and put together again`(splitBytes: Int64) throws {
    let folder = try TemporaryFolder()
    var limits = DiffFileLimits()
    limits.splitBytes = splitBytes
    var writer = DiffFileWriter()
    writer.limits = limits
    let written = try writer.write(
      Sample.plainDraft, changeset: ChangesetSpool(Sample.changeset), to: folder.file("split"))
    let parts = written.manifest.members.filter { $0.name.hasPrefix("changeset") }
    #expect(parts.count == (Sample.changeset.count + Int(splitBytes) - 1) / Int(splitBytes))
    let diff = try DiffFile.verified(at: folder.file("split"), name: .ifNamedByID, limits: limits)
    #expect(try diff.changeset.bytes() == Sample.changeset)
    if parts.count > 1 { #expect(refusal(at: folder.file("split"))?.code == .badManifest) }
  }

  @Test func `Random changesets of many sizes come back as they were`() throws {
    let folder = try TemporaryFolder()
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    for round in 0..<12 {
      var writer = ChangesetWriter()
      writer.beginTable(ChangesetTable(name: "log", keyFlags: [1, 0]))
      for row in 0..<Int64.random(in: 1...40, using: &generator) {
        writer.beginChange(.insert)
        writer.append(integer: row)
        let count = Int.random(in: 0...20_000, using: &generator)
        let isNoise = Bool.random(using: &generator)
        let blob = (0..<count).map { isNoise ? UInt8(truncatingIfNeeded: $0 &* $0 &* 31 >> 5) : 0 }
        blob.withUnsafeBytes { writer.append(.blob, $0) }
      }
      let draft = DiffFileDraft(manifest: Manifest(id: Sample.id), schema: .absent)
      var diffWriter = DiffFileWriter()
      diffWriter.level = Int.random(in: 1...6, using: &generator)
      try diffWriter.write(draft, changeset: ChangesetSpool(writer.bytes), to: folder.file("r\(round)"))
      let diff = try DiffFile.verified(at: folder.file("r\(round)"), name: .ifNamedByID)
      #expect(try diff.changeset.bytes() == writer.bytes, "seed \(seed), round \(round)")
      #expect(diff.isSealed == true)
    }
  }

  @Test func `Packed again by another zstd it is still accepted`() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(try Forge().file(), as: "repacked")
    let diff = try DiffFile.verified(at: path, name: .ifNamedByID)
    #expect(diff.isSealed == false)
    #expect(diff.schema == Sample.schema)
  }

  @Test func `GNU tar lists and unpacks it`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("full.bdiff")
    try DiffFileWriter().write(try Sample.fullDraft(), changeset: ChangesetSpool(Sample.changeset), to: path)
    guard let listing = try run("/usr/bin/env", ["tar", "--zstd", "-tvf", path]) else {
      print("skipped: tar with zstd is not installed")
      return
    }
    let lines = listing.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(
      lines.map { $0.last.map(String.init) } == [
        "manifest.json", "schema.json", "changeset", "annotations", "files/a.txt", "files/b/photo.txt",
      ])
    #expect(lines.allSatisfy { $0.first == "-rw-r--r--" && $0[1] == "0/0" })
    _ = try run("/usr/bin/env", ["tar", "--zstd", "-xf", path, "-C", folder.path, "--no-same-owner"])
    #expect(try bytes(at: folder.file("changeset")) == Sample.changeset)
    #expect(try bytes(at: folder.file("files/b/photo.txt")) == Array("not really".utf8))
  }
}

/// What a program prints, or nil when it fails or is missing.
func run(_ program: String, _ arguments: [String]) throws -> String? {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: program)
  process.arguments = arguments
  let output = Pipe()
  process.standardOutput = output
  process.standardError = FileHandle.nullDevice
  try process.run()
  let data = output.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return process.terminationStatus == 0 ? String(decoding: data, as: UTF8.self) : nil
}
