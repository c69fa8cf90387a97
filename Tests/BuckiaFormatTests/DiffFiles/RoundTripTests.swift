import BuckiaBytes
import Foundation
import SQLiteChangesets
import SQLiteSchemas
import Testing

@testable import BuckiaFormat
import TestSupport

@Suite struct RoundTripTests {
  private var changeset: TemporaryBuffer { TemporaryBuffer(Sample.changeset) }

  @Test("A written file is read unchanged")
  func writeAndRead() throws {
    let folder = try TemporaryFolder()
    let path = folder.file(DiffFileName.diff(Sample.id))
    let written = try DiffFileWriter().write(FileSpec().draft, changeset: changeset, to: path)
    let diff = try DiffFile.verified(at: path)
    #expect(diff.manifest == written.manifest)
    #expect(diff.manifestDigest == written.manifestDigest)
    #expect(diff.fileDigest == written.fileDigest)
    #expect(diff.fileBytes == written.bytes)
    #expect(try FileDigest.sha256(at: path).sha256 == written.fileDigest)
    #expect(try fileBytes(path) == FileSpec().written())
    #expect(try folder.names(in: "") == [DiffFileName.diff(Sample.id)])
  }

  @Test("The members have a fixed order")
  func memberOrder() throws {
    let spec = FileSpec(
      manifest: Sample.fullManifest, tables: [.notes(withdrawn: 1), .log()], annotations: Sample.annotations,
      files: [("b/photo.txt", "not really"), ("a.txt", "")], isSigned: true)
    let read = try ReadFile(spec.written(level: 19))
    #expect(
      read.manifest.members.map(\.name) == [
        "schema.json", "changeset", "annotations", "files/a.txt", "files/b/photo.txt",
      ])
    #expect(read.files == ["a.txt": [], "b/photo.txt": Array("not really".utf8)])
    #expect(read.manifest.audience?.addresses([UInt8](repeating: 9, count: 32)) == true)
    #expect(read.manifest.audience?.addresses([UInt8](repeating: 8, count: 32)) == false)
  }

  @Test("Attachments that do not fit into memory are read from temporary files")
  func largeAttachments() throws {
    var generator = SeededGenerator(seed: 5)
    let contents = (0..<3).map { _ in (0..<(3 << 20) / 8).map { _ in generator.next() }.withUnsafeBytes { Array($0) } }
    var draft = try FileSpec().draft
    for (index, content) in contents.enumerated() {
      let buffer = TemporaryBuffer(folder: TemporaryBuffer.standardFolder, memoryLimit: 1 << 20)
      try MemoryInput(content).copy(to: buffer)
      draft.attachments.append(.init(name: "\(index)", content: buffer))
    }
    let output = MemoryOutput()
    try DiffFileWriter().write(draft, changeset: changeset, to: output)
    let diff = try DiffFile.verified(from: MemoryInput(output.bytes))
    #expect(diff.attachments.map(\.byteCount) == contents.map { Int64($0.count) })
    for (attachment, content) in zip(diff.attachments, contents) {
      // Each time from the start.
      for _ in 0..<2 {
        let copy = MemoryOutput()
        try attachment.forEachPiece { copy.write($0) }
        #expect(copy.bytes == content)
      }
    }
  }

  @Test("An input that returns a few bytes at a time is read, too", arguments: Vector.accepted)
  func fewBytesAtATime(vector: Vector) throws {
    let file = try vector.file.written()
    let diff = try DiffFile.verified(from: SlowInput(file))
    #expect(try ReadFile(diff) == ReadFile(file))
    #expect(diff.fileDigest == ContentDigest(of: file))
    #expect(diff.fileBytes == Int64(file.count))
  }

  @Test("A known schema is only referred to")
  func knownSchema() throws {
    let digest = ContentDigest(of: try SchemaDocument.bytes(Sample.schema))
    var draft = DiffFileDraft(manifest: Manifest(id: Sample.id), schema: .known(digest))
    draft.tablesByRowID = [TableName(Sample.log.name)]
    let output = MemoryOutput()
    try DiffFileWriter().write(draft, changeset: changeset, to: output)
    let read = try ReadFile(output.bytes)
    #expect(read.manifest.schema == digest)
    #expect(read.manifest.tables[1].key == .rowid)
    #expect(read.schema == nil)
  }

  @Test("A long changeset is split and joined again", arguments: [1, 100, 200, 212, 213, 214, 10_000])
  func splitChangeset(splitBytes: Int64) throws {
    var limits = DiffFileLimits()
    limits.splitBytes = splitBytes
    var writer = DiffFileWriter()
    writer.limits = limits
    let output = MemoryOutput()
    let written = try writer.write(FileSpec().draft, changeset: changeset, to: output)
    let parts = written.manifest.members.filter { $0.name.hasPrefix("changeset") }
    #expect(parts.count == (Sample.changeset.count + Int(splitBytes) - 1) / Int(splitBytes))
    let diff = try DiffFile.verified(from: MemoryInput(output.bytes), limits: limits)
    #expect(try diff.changeset.bytes() == Sample.changeset)
    if parts.count > 1 { #expect(refusal(of: output.bytes)?.code == .badManifest) }
  }

  @Test("Random changesets of many sizes are read back unchanged")
  func randomChangesets() throws {
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
      let output = MemoryOutput()
      try diffWriter.write(draft, changeset: TemporaryBuffer(writer.bytes), to: output)
      #expect(try ReadFile(output.bytes).changeset == writer.bytes, "seed \(seed), round \(round)")
    }
  }

  @Test("GNU tar lists and unpacks a file")
  func gnuTar() throws {
    let folder = try TemporaryFolder()
    let spec = FileSpec(files: [("a.txt", ""), ("b/photo.txt", "not really")])
    let path = try folder.write(try spec.written(), to: "full.bdiff")
    guard let listing = try run("/usr/bin/env", ["tar", "--zstd", "-tvf", path]) else {
      print("skipped: tar with zstd is not installed")
      return
    }
    let lines = listing.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(
      lines.map { $0.last.map(String.init) } == [
        "manifest.json", "schema.json", "changeset", "files/a.txt", "files/b/photo.txt",
      ])
    #expect(lines.allSatisfy { $0.first == "-rw-r--r--" && $0[1] == "0/0" })
    _ = try run("/usr/bin/env", ["tar", "--zstd", "-xf", path, "-C", folder.path, "--no-same-owner"])
    #expect(try fileBytes(folder.file("changeset")) == Sample.changeset)
    #expect(try fileBytes(folder.file("files/b/photo.txt")) == Array("not really".utf8))
  }
}

/// Returns its bytes a few at a time, as a socket may.
final class SlowInput: ByteInput {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, bytes.count - position, 1 + position % 7)
    for index in 0..<count { buffer[index] = bytes[position + index] }
    position += count
    return count
  }
}

/// The output of a program, or nil if it fails or is missing.
func run(_ program: String, _ arguments: [String]) throws -> String? {
  let run = try ProgramRun(program, arguments)
  return run.hasSucceeded ? run.output : nil
}
