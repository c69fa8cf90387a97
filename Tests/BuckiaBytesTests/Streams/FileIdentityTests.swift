import BuckiaBytes
import Foundation
import TestSupport
import Testing

@Suite struct FileIdentityTests {
  @Test("A renamed file keeps its identity, and a replaced or written one gets another")
  func sameness() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1, 2, 3], to: "file")
    let opened = try PosixFile(reading: path)
    let first = try #require(try FileIdentity.current(at: path))
    #expect(opened.identity == first)
    try FileManager.default.moveItem(atPath: path, toPath: folder.file("moved"))
    #expect(try FileIdentity.current(at: folder.file("moved")) == first)
    #expect(try FileIdentity.current(at: path) == nil)
    try folder.write([1, 2, 3], to: "file")
    #expect(try FileIdentity.current(at: path) != first)
    let writer = try FileHandle(forUpdating: URL(fileURLWithPath: folder.file("moved")))
    try writer.seekToEnd()
    try writer.write(contentsOf: Data([4]))
    try writer.close()
    #expect(try FileIdentity.current(at: folder.file("moved")) != first)
  }

  @Test("Only a missing file has no identity; if the system does not tell, that is an error")
  func onlyMissingIsNothing() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write([1], to: "file")
    #expect(try FileIdentity.current(at: folder.file("missing")) == nil)
    #expect(throws: ByteStreamError.self) { try FileIdentity.current(at: "\(file)/below") }
    #expect(throws: ByteStreamError.self) {
      try FileIdentity.current(at: folder.file(String(repeating: "x", count: 300)))
    }
  }

  @Test("A temporary file never has a name that a listing could show")
  func temporaryFile() throws {
    let folder = try TemporaryFolder()
    let buffer = TemporaryBuffer(folder: folder.path, memoryLimit: 0)
    try buffer.write([UInt8](repeating: 7, count: 1 << 20))
    #expect(try folder.names(in: ".").isEmpty)
    #expect(try buffer.allBytes() == [UInt8](repeating: 7, count: 1 << 20))
  }
}
