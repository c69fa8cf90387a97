import Foundation

/// A folder for one test, which is deleted when the test is done with it.
public final class TemporaryFolder: Sendable {
  /// The path of the folder.
  public let path: String

  /// The library keeps a person's files where `BUCKIA_HOME` says. Set once, before the first test that has a folder.
  private static let setsHome: Bool = {
    let home = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-test-home").path
    return setenv("BUCKIA_HOME", home, 1) == 0
  }()

  /// Creates a folder with a unique name.
  public init() throws {
    guard Self.setsHome else { throw CocoaError(.featureUnsupported) }
    path = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch { print("left behind: \(path): \(error)") }
  }

  /// The path of a file in the folder.
  public func file(_ name: String) -> String { "\(path)/\(name)" }

  /// True if the folder contains a file.
  public func has(_ name: String) -> Bool { FileManager.default.fileExists(atPath: file(name)) }

  /// Copies a file within the folder, or into it.
  public func copy(_ source: String, to name: String) throws -> String {
    let from = source.hasPrefix("/") ? source : file(source)
    try FileManager.default.copyItem(atPath: from, toPath: file(name))
    return file(name)
  }

  /// Creates a folder within the folder.
  public func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
  }

  /// The sorted names in a folder within the folder.
  public func names(in name: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: file(name)).sorted()
  }

  /// Writes a file.
  @discardableResult
  public func write(_ bytes: [UInt8], to name: String) throws -> String {
    try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
    return file(name)
  }
}

/// The bytes of a file.
public func fileBytes(_ path: String) throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(fileURLWithPath: path))) }
