import BuckiaBytes
import Foundation
import SQLiteChangesets
import SQLiteSchemas
import Testing

@testable import BuckiaFormat
import TestSupport

@Suite struct VectorTests {
  @Test("An invalid file is refused, with the reason and advice", arguments: Vector.refused)
  func refusedVectors(vector: Vector) throws {
    let error = try #require(refusal(of: vector.file.packed()), "it was accepted")
    #expect(error.code == vector.expected, "\(error)")
    #expect(error.description.contains("; "))
    #expect(error.description.unicodeScalars.allSatisfy(EscapedText.isHarmless))
    #expect(!error.isTransient)
  }

  @Test("A valid file is read as described", arguments: Vector.accepted)
  func acceptedVectors(vector: Vector) throws {
    let file = vector.file
    let read = try ReadFile(file.written())
    var manifest = file.manifest
    manifest.tables = file.tables
    manifest.schema = try file.schema.map { ContentDigest(of: try SchemaDocument.bytes($0, author: file.author)) }
    manifest.members = read.manifest.members
    if file.isSigned { manifest.sender?.identity = try Sample.signer().identity }
    #expect(read.manifest == manifest)
    #expect(read.signature == (file.isSigned ? .signed(by: try Sample.signer().identity) : .unsigned))
    #expect(read.schema == file.schema)
    #expect(read.author == file.author)
    #expect(read.changeset == TableChanges.bytes(file.changes))
    #expect(read.annotations == file.annotations)
    #expect(read.files == Dictionary(uniqueKeysWithValues: file.files.map { ($0.name, Array($0.text.utf8)) }))
  }

  @Test("A file repacked by another program has the same contents", arguments: Vector.accepted)
  func repackedVectors(vector: Vector) throws {
    #if canImport(Darwin)
      // CryptoKit signs the same bytes differently each time.
      if vector.file.isSigned { return }
    #endif
    #expect(try ReadFile(vector.file.packed()) == ReadFile(vector.file.written()))
  }

  @Test("A file with another layout is accepted", arguments: Vector.acceptedAsMinimal)
  func reorderedVectors(vector: Vector) throws {
    let read = try ReadFile(vector.file.packed())
    let minimal = try ReadFile(FileSpec().written())
    #expect(read.manifest == minimal.manifest)
    #expect(read.changeset == minimal.changeset)
    #expect(read.schema == minimal.schema)
  }
}

/// The files under `Vectors`, whose archives must never change: other versions and other programs have made such files.
///
/// If `BUCKIA_WRITE_VECTORS` is set to a folder, the files are written there instead.
@Suite struct FrozenVectorTests {
  private static let folder = Bundle.module.bundlePath + "/Vectors"

  /// The decompressed archive. Its compressed form may differ between versions of zstd.
  private static func archive(of file: [UInt8]) throws -> [UInt8] {
    let output = MemoryOutput()
    try ZstdInput(MemoryInput(file), ZstdWorkspace()).copy(to: output)
    return output.bytes
  }

  @Test("The archive is the same byte for byte, and is still read", arguments: Vector.accepted)
  func archiveBytes(vector: Vector) throws {
    let name = vector.name.replacing(" ", with: "-") + ".bdiff"
    let made = try vector.file.written()
    if let target = ProcessInfo.processInfo.environment["BUCKIA_WRITE_VECTORS"] {
      try Data(made).write(to: URL(fileURLWithPath: "\(target)/\(name)"))
      return
    }
    let frozen = try fileBytes("\(Self.folder)/\(name)")
    #if canImport(Darwin)
      // CryptoKit signs the same bytes differently each time.
      if vector.file.isSigned {
        #expect(try ReadFile(frozen).manifest == ReadFile(made).manifest)
        return
      }
    #endif
    #expect(try Self.archive(of: frozen) == Self.archive(of: made))
    #expect(try ReadFile(frozen) == ReadFile(made))
  }

  @Test("An invalid share is refused with the error in its name", arguments: Vector.refusedShares)
  func refusedShares(vector: Vector) throws {
    let code = try #require(vector.expected)
    let name = "\(vector.name.replacing(" ", with: "-")).\(code.rawValue).bdiff"
    let made = try vector.file.packed()
    if let target = ProcessInfo.processInfo.environment["BUCKIA_WRITE_VECTORS"] {
      try Data(made).write(to: URL(fileURLWithPath: "\(target)/refused/\(name)"))
      return
    }
    let frozen = try fileBytes("\(Self.folder)/refused/\(name)")
    #expect(refusal(of: frozen)?.code == code)
    #expect(try Self.archive(of: frozen) == Self.archive(of: made))
  }
}
