import BuckiaStorage
import Foundation
import TestSupport
import Testing

@Suite("A local folder as a storage")
struct LocalFolderTests {
  private let folder: TemporaryFolder
  private let storage: LocalFolder

  init() throws {
    folder = try TemporaryFolder()
    storage = LocalFolder(folder.file("storage"))
  }

  @Test("A folder meets all requirements of a storage")
  func conforms() async throws {
    let faults = try await StorageConformance.run(on: storage, in: RemotePath("conformance"))
    #expect(faults == [])
  }

  @Test("Unfinished files of other programs, hidden files and links are not listed")
  func unfinished() async throws {
    try await storage.put(StorageContents([1]), to: RemotePath("a/object"), .none)
    for name in [
      ".hidden", "film.part", "film.partial", ".~lock.text#", "~syncthing~film.tmp", "film.crdownload", ".buckia-x.tmp",
      "Thumbs.db",
    ] { try folder.write([1], to: "storage/a/\(name)") }
    try FileManager.default.createSymbolicLink(
      atPath: folder.file("storage/a/link"), withDestinationPath: folder.file("storage/a/object"))
    #expect(try await storage.listAll(nil).objects.map(\.path.text) == ["a/object"])
    #expect(try await storage.stat(RemotePath("a/link")) == nil)
  }

  @Test(
    "A name that would not be listed is refused",
    arguments: ["film.part", ".hidden", ".git/object", "a/~$text"])
  func unlistedNames(name: String) async throws {
    let error = try await #require(throws: StorageError.self) {
      try await storage.put(StorageContents([1]), to: RemotePath(name), .none)
    }
    #expect(error.code == .invalidName)
  }

  @Test("A listing continues after the last name of the previous page")
  func pages() async throws {
    for number in 0..<10 { try await storage.put(StorageContents([1]), to: RemotePath("object-\(number)"), .none) }
    var request = ListRequest(limit: 4)
    var sizes: [Int] = []
    while true {
      let page = try await storage.list(request)
      sizes.append(page.objects.count)
      guard let continuation = page.continuation else { break }
      request.continuation = continuation
    }
    #expect(sizes == [4, 4, 2])
  }

  @Test("A file that changes while it is stored is not stored")
  func changingSource() async throws {
    let path = try folder.write(Array(repeating: 7, count: 400_000), to: "source")
    let contents = try StorageContents(file: path)
    try folder.write(Array(repeating: 8, count: 400_000), to: "source")
    let error = try await #require(throws: StorageError.self) {
      try await storage.put(contents, to: RemotePath("object"), .none)
    }
    #expect(error.code == .sourceChanged)
    #expect(try await storage.stat(RemotePath("object")) == nil)
    #expect(try folder.names(in: "storage").filter { $0.hasSuffix(".tmp") }.isEmpty)
  }

  @Test("A file in place of a folder is named")
  func fileInTheWay() async throws {
    try await storage.put(StorageContents([1]), to: RemotePath("a"), .none)
    let error = try await #require(throws: StorageError.self) {
      try await storage.put(StorageContents([1]), to: RemotePath("a/b"), .none)
    }
    #expect(error.code == .unwritable)
    #expect(error.description.contains("/a"))
  }

  @Test("The probe finds the abilities that the folder declares")
  func probe() async throws {
    #expect(try await StorageProbe.run(on: storage) == storage.capabilities)
    #expect(try await storage.listAll(nil).objects.isEmpty)
  }
}
