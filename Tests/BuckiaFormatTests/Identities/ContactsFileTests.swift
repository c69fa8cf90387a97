import BuckiaBytes
import Foundation
import TestSupport
import Testing

@testable import BuckiaFormat

struct ContactsFileTests {
  private let folder: TemporaryFolder
  private let file: ContactsFile

  init() throws {
    folder = try TemporaryFolder()
    file = ContactsFile(path: folder.file("contacts.json"))
  }

  private func add(_ identity: Identity) throws {
    _ = try file.update { try $0.add(identity.card.text, named: nil, besides: nil, at: 1) }
  }

  @Test
  func `contacts are stored privately`() throws {
    #expect(try file.read() == Contacts())
    try add(person("Anna"))
    #expect(try file.read().all.map(\.name) == ["Anna"])
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }

  @Test
  func `contacts that others can write are not used`() throws {
    try add(person("Anna"))
    try FileManager.default.setAttributes([.posixPermissions: 0o620], ofItemAtPath: file.path)
    #expect(code { _ = try file.read() } == .notPrivate)
    #expect(code { try add(try person("Ben", 2)) } == .notPrivate)
  }

  @Test
  func `a link to contacts is not followed`() throws {
    try add(person("Anna"))
    try FileManager.default.moveItem(atPath: file.path, toPath: folder.file("elsewhere"))
    try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: folder.file("elsewhere"))
    #expect(throws: ByteStreamError.self) { try file.read() }
  }

  @Test
  func `a failed change leaves the file unchanged`() throws {
    try add(person("Anna"))
    let before = try fileBytes(file.path)
    #expect(code { try add(try person("Anna", 2)) } == .contactExists)
    #expect(try fileBytes(file.path) == before)
  }

  @Test
  func `no writer loses a contact that another one has added`() async throws {
    let file = file
    try await withThrowingTaskGroup(of: Void.self) { group in
      for seed in UInt64(1)...12 {
        group.addTask {
          let card = try person("Contact \(seed)", seed).card.text
          _ = try file.update { try $0.add(card, named: nil, besides: nil, at: 1) }
        }
      }
      try await group.waitForAll()
    }
    #expect(try file.read().all.count == 12)
  }
}
