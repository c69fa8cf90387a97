import Foundation

/// A folder of a test's own, gone when the test is done with it.
public final class TemporaryFolder: Sendable {
  /// Where it is.
  public let path: String

  /// What the library keeps for a person goes where `BUCKIA_HOME` says. Set once, before the first test that has a folder.
  private static let setsHome: Bool = {
    let home = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-test-home").path
    return setenv("BUCKIA_HOME", home, 1) == 0
  }()

  /// Makes a folder with a unique name.
  public init() throws {
    guard Self.setsHome else { throw CocoaError(.featureUnsupported) }
    path = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch { print("left behind: \(path): \(error)") }
  }

  /// The path of a file in it.
  public func file(_ name: String) -> String { "\(path)/\(name)" }

  /// True if a file is in it.
  public func has(_ name: String) -> Bool { FileManager.default.fileExists(atPath: file(name)) }

  /// Copies a file within it, or into it.
  public func copy(_ source: String, to name: String) throws -> String {
    let from = source.hasPrefix("/") ? source : file(source)
    try FileManager.default.copyItem(atPath: from, toPath: file(name))
    return file(name)
  }

  /// Makes a folder within it.
  public func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
  }

  /// The names in a folder within it, sorted.
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
