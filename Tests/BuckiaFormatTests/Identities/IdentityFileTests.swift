import BuckiaBytes
import Foundation
import TestSupport
import Testing

@testable import BuckiaFormat

struct IdentityFileTests {
  private let folder: TemporaryFolder
  private let file: IdentityFile

  init() throws {
    folder = try TemporaryFolder()
    file = IdentityFile(path: folder.file("identity"))
  }

  private func setPermissions(_ permissions: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: file.path)
  }

  @Test
  func `an identity is written and read unchanged, and only its owner may read it`() throws {
    let anna = try person("Anna")
    try file.create(anna)
    #expect(try file.read() == anna)
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }

  @Test
  func `an identity never replaces another`() throws {
    let anna = try person("Anna")
    try file.create(anna)
    #expect(code { try file.create(try person("Anna", 2)) } == .identityExists)
    #expect(try file.read() == anna)
  }

  @Test(arguments: [0o640, 0o604, 0o620, 0o602, 0o644])
  func `a file that others can access is not used`(_ permissions: Int) throws {
    try file.create(person("Anna"))
    try setPermissions(permissions)
    #expect(code { _ = try file.read() } == .notPrivate)
  }

  @Test
  func `a link is not followed`() throws {
    let real = IdentityFile(path: folder.file("real"))
    try real.create(person("Anna"))
    try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: real.path)
    #expect(throws: ByteStreamError.self) { try file.read() }
    // A dangling link is not written through either.
    try FileManager.default.removeItem(atPath: real.path)
    #expect(code { try file.create(try person("Anna")) } == .identityExists)
    #expect(!FileManager.default.fileExists(atPath: real.path))
  }

  @Test
  func `a missing file is an error with advice`() throws {
    #expect(try file.readIfPresent() == nil)
    let error = #expect(throws: IdentityError.self) { try file.read() }
    #expect(error?.code == .noIdentity)
    #expect(error?.message == "there is no identity; `buckia identity new` makes one")
  }

  @Test(arguments: [
    ("\"format\": 1", "\"format\": 2", IdentityError.Code.unsupportedFormat),
    ("\"format\": 1", "\"format\": 1, \"more\": 1", .invalidFile),
    ("\"signing\"", "\"singing\"", .invalidFile),
    ("buckia-card-1:", "buckia-card-1:A", .invalidCard),
  ])
  func `a damaged file is refused`(_ old: String, _ new: String, _ expected: IdentityError.Code) throws {
    let text = String(decoding: try person("Anna").document, as: UTF8.self)
    #expect(text.contains(old))
    let damaged = text.replacingOccurrences(of: old, with: new)
    #expect(code { _ = try Identity(document: Array(damaged.utf8)) } == expected)
  }

  @Test
  func `keys that belong to another card are refused`() throws {
    let anna = try person("Anna")
    let other = try person("Anna", 2)
    let mixed = Identity(card: anna.card, signing: other.signing, encryption: anna.encryption, former: [])
    #expect(code { _ = try Identity(document: mixed.document) } == .invalidFile)
  }

  @Test
  func `an identity shows no secret`() throws {
    let anna = try person("Anna")
    var dumped = "\(anna) \(String(reflecting: anna))"
    dump(anna, to: &dumped)
    for secret in [anna.signing, anna.encryption] {
      #expect(!dumped.contains(secret.bytes.map(String.init).joined(separator: ", ")))
      #expect(!dumped.contains("\(secret.bytes[0])\n    - \(secret.bytes[1])"))
    }
  }
}
