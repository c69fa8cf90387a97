import Foundation
import Testing

@testable import BuckiaDiffFiles

/// The committed files under Vectors, and the program that made them.
///
/// With `BUCKIA_WRITE_VECTORS` set to a folder, the files are written there instead of compared.
@Suite struct VectorTests {
  private static let folder = Bundle.module.bundlePath + "/Vectors"

  private static func index() throws -> (zstd: String, vectors: [(file: String, expect: String)]) {
    var fields = try JSONFields(JSONParser.parse(bytes(at: "\(folder)/index.json")), at: "", of: .manifest)
    let zstd = try fields.string("zstd")
    let vectors = try fields.list("vectors", limit: 1_000) { (value, path) throws(DiffFileError) in
      var entry = try JSONFields(value, at: path, of: .manifest)
      return (file: try entry.string("file"), expect: try entry.string("expect"))
    }
    return (zstd, vectors)
  }

  @Test func `Every vector comes to what the index says`() throws {
    let vectors = try Self.index().vectors
    #expect(vectors.count == VectorCase.all.count)
    for (file, expect) in vectors {
      let error = refusal(at: "\(Self.folder)/\(file)")
      #expect(error?.code.rawValue ?? "good" == expect, "\(file): \(error?.description ?? "accepted")")
    }
  }

  @Test(arguments: VectorCase.all)
  func `A vector is made again byte for byte`(vector: VectorCase) throws {
    let made = try vector.make()
    if let target = ProcessInfo.processInfo.environment["BUCKIA_WRITE_VECTORS"] {
      let url = URL(fileURLWithPath: "\(target)/\(vector.name)")
      try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(made).write(to: url)
      return
    }
    // Another zstd may pack the same bytes differently, and CryptoKit signs them differently each time.
    guard try Self.index().zstd == DiffFileWriter.zstdVersion else { return }
    #if canImport(Darwin)
      if vector.name.contains("signed") || vector.name.hasPrefix("badSignature") { return }
    #endif
    #expect(try bytes(at: "\(Self.folder)/\(vector.name)") == made)
  }

  @Test func `The index lists every case`() throws {
    if let target = ProcessInfo.processInfo.environment["BUCKIA_WRITE_VECTORS"] {
      let entries = VectorCase.all.map { vector -> JSONValue in
        ["file": .string(vector.name), "expect": .string(vector.expectation)]
      }
      let index: JSONValue = ["zstd": .string(DiffFileWriter.zstdVersion), "vectors": .array(entries)]
      try Data((index.prettyText() + "\n").utf8).write(to: URL(fileURLWithPath: "\(target)/index.json"))
      return
    }
    #expect(try Self.index().vectors.map(\.file) == VectorCase.all.map(\.name))
  }

  @Test(arguments: VectorCase.all.filter { $0.expectation != "good" })
  func `A refusal names the file, the reason and what to do`(vector: VectorCase) throws {
    let path = "\(Self.folder)/\(vector.name)"
    let error = try #require(refusal(at: path))
    #expect(error.path == path)
    #expect(error.description.hasPrefix("\(path): "))
    #expect(error.description.contains("; "))
    #expect(error.description.unicodeScalars.allSatisfy(ShownText.isSafe))
    #expect(!error.isTransient)
  }
}
