import Foundation
import Testing

@testable import BuckiaBytes
import TestSupport

@Suite struct PosixFileTests {
  private func refusal(_ path: String) -> ByteStreamError? {
    do throws(ByteStreamError) {
      _ = try PosixFile(reading: path)
      return nil
    } catch {
      return error
    }
  }

  @Test("Only regular files are read, and links are not followed")
  func regularFiles() throws {
    let folder = try TemporaryFolder()
    let sound = try folder.write([1], to: "sound")
    try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: sound)
    #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
    for path in [folder.file("link"), folder.file("pipe"), folder.path, "/dev/null"] {
      let error = try #require(refusal(path))
      #expect(error.code == .notRegularFile, "\(error)")
      #expect(error.path == path)
    }
    #expect(refusal(sound) == nil)
  }

  @Test("A missing file is named with the system's reason")
  func missingFile() throws {
    let folder = try TemporaryFolder()
    let error = try #require(refusal(folder.file("missing")))
    #expect(error.code == .unreadable)
    #expect(error.errno == ENOENT)
    #expect(error.description == "\(folder.file("missing")): it cannot be opened: No such file or directory")
  }

  @Test("An opened file is read, even if another takes its name meanwhile")
  func replacedMeanwhile() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Array("first".utf8), to: "file")
    let file = try PosixFile(reading: path)
    try FileManager.default.removeItem(atPath: path)
    try folder.write(Array("second".utf8), to: "file")
    #expect(file.initialByteCount == 5)
    let output = MemoryOutput()
    #expect(try file.copy(to: output) == 5)
    #expect(output.bytes == Array("first".utf8))
  }

  @Test("Reading at an offset does not move the position")
  func readingAtOffset() throws {
    let folder = try TemporaryFolder()
    let file = try PosixFile(reading: folder.write(Array(0..<100), to: "file"))
    var window = [UInt8](repeating: 0, count: 10)
    #expect(try window.withUnsafeMutableBytes { try file.read(into: $0, at: 95) } == 5)
    #expect(window.prefix(5) == [95, 96, 97, 98, 99])
    #expect(try window.withUnsafeMutableBytes { try file.read(into: $0) } == 10)
    #expect(window == Array(0..<10))
    #expect(try window.withUnsafeMutableBytes { try file.read(into: $0, at: 100) } == 0)
  }

  @Test("A new file does not replace another")
  func existingFile() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1], to: "file")
    let error = #expect(throws: ByteStreamError.self) { try PosixFile(creating: path) }
    #expect(error?.code == .alreadyExists)
    #expect(try fileBytes(path) == [1])
  }
}
