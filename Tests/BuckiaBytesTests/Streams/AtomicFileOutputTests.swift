import Foundation
import Testing

@testable import BuckiaBytes
import TestSupport

@Suite struct AtomicFileOutputTests {
  @Test("A file appears when it is published", arguments: [true, false])
  func publishing(replacing: Bool) throws {
    let folder = try TemporaryFolder()
    let output = try AtomicFileOutput(at: folder.file("new"), replacing: replacing)
    try output.write([1, 2])
    #expect(!folder.has("new"))
    try output.write([3])
    try output.publish()
    #expect(try fileBytes(folder.file("new")) == [1, 2, 3])
    #expect(try folder.names(in: "") == ["new"])
  }

  @Test("An output dropped before it is published leaves nothing behind")
  func droppedUnpublished() throws {
    let folder = try TemporaryFolder()
    do {
      let output = try AtomicFileOutput(at: folder.file("new"), replacing: false)
      try output.write([1])
      #expect(try folder.names(in: "").count == 1)
    }
    #expect(try folder.names(in: "").isEmpty)
  }

  @Test("An existing file is only replaced on request")
  func replacing() throws {
    let folder = try TemporaryFolder()
    try folder.write([9], to: "taken")
    let refused = #expect(throws: ByteStreamError.self) {
      try AtomicFileOutput(at: folder.file("taken"), replacing: false)
    }
    #expect(refused?.code == .alreadyExists)
    let output = try AtomicFileOutput(at: folder.file("taken"), replacing: true)
    try output.write([1])
    #expect(try fileBytes(folder.file("taken")) == [9])
    try output.publish()
    #expect(try fileBytes(folder.file("taken")) == [1])
  }

  @Test("A file that took the name meanwhile stays")
  func nameTaken() throws {
    let folder = try TemporaryFolder()
    let output = try AtomicFileOutput(at: folder.file("new"), replacing: false)
    try output.write([1])
    try folder.write([9], to: "new")
    let error = #expect(throws: ByteStreamError.self) { try output.publish() }
    #expect(error?.code == .alreadyExists)
    #expect(try fileBytes(folder.file("new")) == [9])
  }

  @Test("Errors name the requested file, not the temporary one")
  func errorsNameTarget() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("no/such/folder")
    let error = #expect(throws: ByteStreamError.self) { try AtomicFileOutput(at: path, replacing: false) }
    #expect(error?.code == .unwritable)
    #expect(error?.description == "\(path): it cannot be written: No such file or directory")
  }

  @Test func `the next process deletes the files that a killed process has left, and no others`() throws {
    let folder = try TemporaryFolder()
    let dead = [".buckia-dead.tmp", ".buckia-database.tmp", ".buckia-database.tmp-wal", ".buckia-database.tmp-lock"]
    let others = [".buckia-living.tmp", ".buckia-open.tmp", ".buckia-open.tmp-lock", ".buckia-lock", "buckia-dead.tmp"]
    for name in dead + others { try folder.write([1], to: name) }
    let locks = try [".buckia-living.tmp", ".buckia-open.tmp-lock"].map { try PosixFile(reading: folder.file($0)) }
    for lock in locks { #expect(lock.tryLock()) }
    let output = try AtomicFileOutput(at: folder.file("new"), replacing: false)
    #expect(try folder.names(in: "").count == others.count + 1)
    try output.publish()
    #expect(try folder.names(in: "").sorted() == (others + ["new"]).sorted())
    withExtendedLifetime(locks) {}
  }

  @Test func `a file that is being written is not deleted`() throws {
    let folder = try TemporaryFolder()
    let output = try AtomicFileOutput(at: folder.file("new"), replacing: false)
    try output.write([1])
    TemporaryFile.deleteAbandoned(in: folder.path)
    try output.publish()
    #expect(try fileBytes(folder.file("new")) == [1])
    #expect(try folder.names(in: "") == ["new"])
  }
}
