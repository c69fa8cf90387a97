import BuckiaBytes
import TestSupport
import Testing

@Suite("The names in a folder")
struct FolderNamesTests {
  @Test("All names are listed, including hidden ones and folders, except . and ..")
  func all() throws {
    let folder = try TemporaryFolder()
    for name in ["b", ".hidden", "a café"] { try folder.write([1], to: name) }
    try folder.makeFolder("inner")
    #expect(try FolderNames.all(in: folder.path).sorted() == [".hidden", "a café", "b", "inner"])
    #expect(try FolderNames.all(in: folder.file("inner")).isEmpty)
  }

  @Test("A missing folder and a file in its place are errors with the system's reason")
  func none() throws {
    let folder = try TemporaryFolder()
    let missing = folder.file("missing")
    let error = try #require(throws: ByteStreamError.self) { try FolderNames.all(in: missing) }
    #expect(error.isMissingFile && error.path == missing)
    #expect(error.message == "the folder cannot be read: No such file or directory")
    let file = try folder.write([], to: "file")
    #expect(throws: ByteStreamError.self) { try FolderNames.all(in: file) }
  }
}
