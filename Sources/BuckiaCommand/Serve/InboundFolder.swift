import Buckia
import BuckiaBytes
import BuckiaFormat

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A folder in which diff files arrive.
struct InboundFolder: Sendable {
  /// A file that would be applied.
  struct File {
    let name: String
    let id: KSUID
    let path: String
    let identity: FileIdentity
    /// True if it is an answer to an invitation, and holds no changes.
    let isAnswer: Bool
  }

  /// The typed path of the folder.
  let path: String

  /// The inner folder for files that are not to be applied: `apply` ignores inner folders.
  private static let setAside = "set-aside"

  /// The files, by id. Other files are left out, as in applying a folder.
  ///
  /// - Throws: `BuckiaError` with `unreadableFolder`.
  func files() throws -> [File] {
    try FileSystem.names(in: path).compactMap { file($0) }.sorted { $0.id < $1.id }
  }

  /// The file of a name; nil if there is none that would be applied.
  func file(named name: String) -> File? {
    guard !name.utf8.contains(UInt8(ascii: "/")) else { return nil }
    return file(name)
  }

  private func file(_ name: String) -> File? {
    let answer = DiffFileName.acceptanceID(name)
    let diff = DiffFileName.diffID(name) ?? DiffFileName.encryptedID(name) ?? DiffFileName.changesetID(name)
    guard let id = diff ?? answer else { return nil }
    let path = inside(name)
    guard let identity = FileIdentity.ofFile(at: path) else { return nil }
    return File(name: name, id: id, path: path, identity: identity, isAnswer: answer != nil)
  }

  /// Moves a file to the inner folder, where it is not applied.
  ///
  /// - Returns: The new path.
  /// - Throws: `BuckiaError` with `unwritable` when it cannot be moved; it is where it was then.
  func setAside(_ file: File) throws -> String {
    let folder = inside(Self.setAside)
    let target = "\(folder)/\(file.name)"
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try FileManager.default.moveItem(atPath: file.path, toPath: target)
    } catch {
      throw BuckiaError(.unwritable, "the file cannot be moved into \(folder): \(error)", path: file.path)
    }
    return target
  }

  private func inside(_ name: String) -> String {
    path.utf8.last == UInt8(ascii: "/") ? path + name : "\(path)/\(name)"
  }
}
