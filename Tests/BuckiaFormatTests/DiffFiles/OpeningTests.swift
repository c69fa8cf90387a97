import BuckiaBytes
import Foundation
import SQLiteChangesets
import Testing

@testable import BuckiaFormat
import TestSupport

@Suite struct OpeningTests {
  private func written(in folder: TemporaryFolder) throws -> String {
    try folder.write(FileSpec().written(), to: DiffFileName.diff(Sample.id))
  }

  private static var zerosDraft: DiffFileDraft { DiffFileDraft(manifest: Manifest(id: Sample.id), schema: .absent) }

  /// A changeset that compresses to a hundredth.
  private static var zeros: TemporaryBuffer {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0]))
    writer.beginChange(.insert)
    writer.append(integer: 1)
    [UInt8](repeating: 0, count: 100_000).withUnsafeBytes { writer.append(.blob, $0) }
    return TemporaryBuffer(writer.bytes)
  }

  private func rawRefusal(at path: String) -> DiffFileError? {
    do throws(DiffFileError) {
      _ = try RawChangeset.verified(at: path)
      return nil
    } catch {
      return error
    }
  }

  @Test("Only regular files are read")
  func regularFiles() throws {
    let folder = try TemporaryFolder()
    let sound = try written(in: folder)
    try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: sound)
    #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
    for path in [folder.file("link"), folder.file("pipe"), folder.path, "/dev/null"] {
      #expect(refusal(at: path)?.code == .notRegularFile, "\(path)")
      #expect(rawRefusal(at: path)?.code == .notRegularFile, "\(path)")
      #expect(refusal(at: path)?.path == path)
      #expect(refusal(at: path)?.isTransient == false)
      #expect(throws: DiffFileError.self) { try FileDigest.sha256(at: path) }
    }
    let missing = refusal(at: folder.file("missing"))
    #expect(missing?.code == .unreadable)
    #expect(missing?.systemError == ENOENT)
    #expect(missing?.isTransient == true)
  }

  @Test("In a folder the name must be the id")
  func nameIsID() throws {
    let folder = try TemporaryFolder()
    let sound = try written(in: folder)
    #expect(refusal(at: sound, name: .mustMatch) == nil)
    let copy = folder.file("copy.bdiff")
    try FileManager.default.copyItem(atPath: sound, toPath: copy)
    #expect(refusal(at: copy, name: .mustMatch)?.code == .idMismatch)
    #expect(refusal(at: copy, name: .ifNamedByID) == nil)
    let renamed = folder.file(DiffFileName.diff(Sample.later))
    try FileManager.default.moveItem(atPath: copy, toPath: renamed)
    #expect(refusal(at: renamed, name: .mustMatch)?.code == .idMismatch)
    #expect(refusal(at: renamed, name: .ifNamedByID)?.code == .idMismatch)
  }

  @Test("Limits are enforced")
  func limits() throws {
    let output = MemoryOutput()
    try DiffFileWriter().write(Self.zerosDraft, changeset: Self.zeros, to: output)
    #expect(refusal(of: output.bytes, limits: DiffFileLimits(contentBytes: 100))?.code == .tooLarge)
    let strict = DiffFileLimits(freeContentBytes: 100, expansion: 10)
    #expect(refusal(of: output.bytes, limits: strict)?.code == .tooLarge)
    #expect(refusal(of: output.bytes, limits: DiffFileLimits(freeContentBytes: 100, expansion: 1000)) == nil)
  }

  @Test("If the size of a file is unknown, its content is compared with the bytes read so far")
  func unknownSize() throws {
    let output = MemoryOutput()
    try DiffFileWriter().write(Self.zerosDraft, changeset: Self.zeros, to: output)
    func refusal(_ limits: DiffFileLimits) -> DiffFileError? {
      do throws(DiffFileError) {
        _ = try DiffFile.verified(from: SlowInput(output.bytes), limits: limits)
        return nil
      } catch {
        return error
      }
    }
    #expect(refusal(DiffFileLimits(contentBytes: 100))?.code == .tooLarge)
    #expect(refusal(DiffFileLimits(freeContentBytes: 100, expansion: 10))?.code == .tooLarge)
    #expect(refusal(DiffFileLimits(freeContentBytes: 100, expansion: 1000)) == nil)
  }

  @Test("The digest of a file that is too long covers its start and its size")
  func digestOfLongFile() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Array("0123456789".utf8), to: "file")
    let beginning = try FileDigest.sha256(at: path, limit: 5)
    #expect(!beginning.isWhole)
    #expect(beginning.byteCount == 10)
    #expect(beginning.sha256 == ContentDigest(of: Array("01234…10".utf8)))
    for limit in [10, 11, 1 << 30] as [Int64] {
      let whole = try FileDigest.sha256(at: path, limit: limit)
      #expect(whole.isWhole)
      #expect(whole.sha256 == ContentDigest(of: Array("0123456789".utf8)))
    }
  }

  @Test("The named sender must sign")
  func senderSigns() throws {
    var spec = FileSpec()
    spec.manifest.sender = .init(identity: try Sample.signer().identity)
    let error = #expect(throws: DiffFileError.self) { try spec.written() }
    #expect(error?.code == .badSignature)
    spec.isSigned = true
    #expect(refusal(of: try spec.written()) == nil)
  }

  @Test("The error about a damaged file names the signer")
  func signerOfDamagedFile() throws {
    let signer = try Sample.signer().identity
    let damaged = FileSpec(isSigned: true, corruptions: [.flip(byte: -1, of: "changeset")])
    #expect(refusal(of: try damaged.packed())?.signer == signer)
    let unsigned = refusal(of: try FileSpec(corruptions: [.flip(byte: -1, of: "changeset")]).packed())
    #expect(unsigned?.isSignerKnown == true && unsigned?.signer == nil)
    #expect(refusal(of: [1, 2, 3])?.isSignerKnown == false)
  }

  @Test(
    "A file of gigabytes that is no changeset is refused by its first bytes",
    arguments: [[UInt8](), Array("T\u{2}\u{1}\u{0}t\u{0}".utf8), Array("P".utf8)])
  func largeFileJudgedFirst(beginning: [UInt8]) throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(beginning, to: "sparse")
    #expect(truncate(path, 4 << 30) == 0)
    var asked = 0
    var found: DiffFileError?
    do throws(DiffFileError) {
      _ = try RawChangeset.verified(
        at: path,
        isWanted: {
          asked += 1
          return true
        })
    } catch {
      found = error
    }
    #expect(found?.code == .badChangeset)
    // The closure is called for each 128 KiB, of which there are 32,768.
    #expect(asked < 64)
  }

  @Test("A large changeset is read like a small one")
  func largeChangeset() throws {
    let folder = try TemporaryFolder()
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0]))
    let text = [UInt8](repeating: 0x61, count: 3_000)
    for number in 0..<4_000 {
      writer.beginChange(.insert)
      writer.append(integer: Int64(number))
      text.withUnsafeBytes { writer.append(.text, $0) }
    }
    let path = try folder.write(writer.bytes, to: "large.changeset")
    let raw = try RawChangeset.verified(at: path)
    #expect(raw.inspection.tables.map(\.inserted) == [4_000])
    #expect(raw.digest == ContentDigest(of: writer.bytes))
    #expect(try raw.changeset.allBytes() == writer.bytes)
    try folder.write(writer.bytes.dropLast(), to: "large.changeset")
    #expect(rawRefusal(at: path)?.code == .badChangeset)
  }

  @Test("Nothing is overwritten unless requested")
  func existingFile() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1, 2, 3], to: "taken")
    var writer = DiffFileWriter()
    let spool = TemporaryBuffer(Sample.changeset)
    let error = try #require(throws: DiffFileError.self) {
      try writer.write(FileSpec().draft, changeset: spool, to: path)
    }
    #expect(error.code == .alreadyExists)
    #expect(!error.isTransient)
    #expect(try fileBytes(path) == [1, 2, 3])
    writer.replacesExisting = true
    try writer.write(FileSpec().draft, changeset: spool, to: path)
    #expect(refusal(at: path) == nil)
    #expect(try folder.names(in: "") == ["taken"])
  }

  @Test("A failure leaves nothing behind")
  func failureLeavesNothing() throws {
    let folder = try TemporaryFolder()
    var draft = try FileSpec().draft
    draft.schema = .included([Sample.log])
    let error = try #require(throws: DiffFileError.self) {
      try DiffFileWriter().write(draft, changeset: TemporaryBuffer(Sample.changeset), to: folder.file("a"))
    }
    #expect(error.code == .contradiction)
    #expect(error.path == folder.file("a"))
    var writer = DiffFileWriter()
    writer.limits = DiffFileLimits(freeContentBytes: 10, expansion: 1)
    #expect(throws: DiffFileError.self) {
      try writer.write(Self.zerosDraft, changeset: Self.zeros, to: folder.file("a"))
    }
    let missing = try #require(throws: DiffFileError.self) {
      try writer.write(FileSpec().draft, changeset: TemporaryBuffer(), to: folder.file("no/such/folder"))
    }
    #expect(missing.code == .unwritable)
    #expect(missing.path == folder.file("no/such/folder"))
    #expect(try folder.names(in: "") == [])
  }

  @Test("A raw changeset or patchset is read with its counts")
  func rawChangeset() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Sample.changeset, to: DiffFileName.changeset(Sample.id))
    let raw = try RawChangeset.verified(at: path)
    #expect(raw.id == Sample.id)
    #expect(raw.digest == ContentDigest(of: Sample.changeset))
    #expect(raw.inspection.tables.map(\.inserted) == [2, 1])
    #expect(raw.inspection.changes == 5)
    #expect(raw.format == .changeset)
    #expect(try raw.changeset.bytes() == Sample.changeset)

    var patch = ChangesetWriter()
    patch.beginTable(ChangesetTable(name: "empty", format: .patchset, keyFlags: [1]))
    patch.beginTable(ChangesetTable(name: "t", format: .patchset, keyFlags: [1, 0]))
    patch.beginChange(.delete)
    patch.append(integer: 1)
    let rawPatch = try RawChangeset.verified(at: folder.write(patch.bytes, to: "some.patchset"))
    #expect(rawPatch.id == nil)
    #expect(rawPatch.format == .patchset)
    #expect(rawPatch.inspection.tables.map(\.header.name) == ["t"])
    #expect(rawPatch.inspection.summary.tables.map(\.withoutOldValues) == [1])
  }

  @Test("A raw changeset may be empty, have UPDATEs without old values, and SQLite's own tables")
  func unusualRawChangesets() throws {
    let folder = try TemporaryFolder()
    let empty = try RawChangeset.verified(at: folder.write([], to: "empty"))
    #expect(empty.inspection.changes == 0 && empty.inspection.tables.isEmpty && empty.changeset.isEmpty)
    #expect(empty.digest == ContentDigest(of: []))
    let update = TableChanges("t", key: [1, 0], [.update(old: [1, .unchanged], new: [.unchanged, 2])])
    let rebased = try RawChangeset.verified(at: folder.write(TableChanges.bytes([update]), to: "update"))
    #expect(rebased.inspection.summary.tables.map(\.withoutOldValues) == [1])
    let statistics = TableChanges("sqlite_stat1", key: [1, 2, 0], [.insert(["t", "i", "1 1"])])
    let analyzed = try RawChangeset.verified(
      at: folder.write(TableChanges.bytes([statistics, TableChanges("t", key: [1], [.insert([1])])]), to: "analyzed"))
    #expect(analyzed.inspection.tables.map(\.header.name) == ["sqlite_stat1", "t"])
  }

  @Test("Reading stops if the file is no longer wanted")
  func abandoned() throws {
    let folder = try TemporaryFolder()
    let diff = try written(in: folder)
    let raw = try folder.write(Sample.changeset, to: DiffFileName.changeset(Sample.id))
    func read(_ path: String, _ isWanted: @escaping () -> Bool) throws {
      if path == raw {
        _ = try RawChangeset.verified(at: path, isWanted: isWanted)
      } else {
        _ = try DiffFile.verified(at: path, isWanted: isWanted)
      }
    }
    for path in [diff, raw] {
      var questions = 0
      try read(path) {
        questions += 1
        return true
      }
      #expect(questions >= 2)
      for limit in 0..<questions {
        var count = 0
        let error = #expect(throws: DiffFileError.self) {
          try read(path) {
            count += 1
            return count <= limit
          }
        }
        #expect(error?.code == .abandoned)
      }
    }
  }

  @Test("Raw files that are no changesets are refused")
  func notAChangeset() throws {
    let folder = try TemporaryFolder()
    #expect(rawRefusal(at: try folder.write(Array("text".utf8), to: "text"))?.code == .badChangeset)
    var ledger = ChangesetWriter()
    ledger.beginTable(ChangesetTable(name: "buckia_ledger", keyFlags: [1]))
    let named = rawRefusal(at: try folder.write(ledger.bytes, to: "named"))
    #expect(named?.code == .badName)
    #expect(named?.table == "buckia_ledger")
    for count in 1..<Sample.changeset.count {
      // If whole changes are missing at the end, only a manifest can reveal it.
      let error = rawRefusal(at: try folder.write(Array(Sample.changeset[..<count]), to: "cut"))
      #expect(error == nil || error?.code == .badChangeset, "\(count)")
    }
  }

  @Test("A full disk is not a fault of the file")
  func fullDisk() throws {
    #if os(Linux)
      let folder = try TemporaryFolder()
      let volume = folder.file("small")
      try FileManager.default.createDirectory(atPath: volume, withIntermediateDirectories: false)
      guard getuid() == 0, try run("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", volume]) != nil else {
        print("skipped: a small volume can only be mounted by root")
        return
      }
      defer { do { _ = try run("/bin/umount", ["-l", volume]) } catch { print("could not unmount \(volume)") } }
      var changes = ChangesetWriter()
      changes.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0]))
      changes.beginChange(.insert)
      changes.append(integer: 1)
      var generator = SeededGenerator(seed: 1)
      let noise = (0..<(40 << 20) / 8).map { _ in generator.next() }
      noise.withUnsafeBytes { changes.append(.blob, $0) }
      let spool = TemporaryBuffer(changes.bytes)
      let draft = DiffFileDraft(manifest: Manifest(id: Sample.id), schema: .absent)

      let writing = try #require(throws: DiffFileError.self) {
        try DiffFileWriter().write(draft, changeset: spool, to: "\(volume)/new")
      }
      #expect(writing.code == .fullDisk)
      #expect(writing.isTransient)
      #expect(try FileManager.default.contentsOfDirectory(atPath: volume) == [])

      let path = folder.file("large")
      try DiffFileWriter().write(draft, changeset: spool, to: path)
      let spooling = try #require(throws: DiffFileError.self) {
        _ = try DiffFile.verified(at: path, name: .ifNamedByID, temporaryFolder: volume)
      }
      #expect(spooling.code == .fullDisk)
      #expect(spooling.isTransient)
      #expect(spooling.path == path)
    #endif
  }

  @Test(
    "A raw changeset has no more columns than a table can have",
    arguments: [(2_001, true), (2_002, false), (65_536, false)])
  func columnLimit(columns: Int, isGood: Bool) throws {
    let folder = try TemporaryFolder()
    var writer = ChangesetWriter()
    writer.beginTable(
      ChangesetTable(name: "t", format: .patchset, keyFlags: [1] + [UInt8](repeating: 0, count: columns - 1)))
    writer.beginChange(.delete)
    writer.append(integer: 1)
    let error = rawRefusal(at: try folder.write(writer.bytes, to: "raw"))
    #expect(error?.code == (isGood ? nil : .badChangeset))
  }
}
