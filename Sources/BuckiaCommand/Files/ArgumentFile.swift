import Foundation

/// A file that was named on the command line, or standard input for `-`.
enum ArgumentFile {
  /// The argument that stands for standard input.
  static let standardInput = "-"

  /// Gives `body` the path of the file.
  ///
  /// Standard input is copied into a temporary folder first, open to its owner alone and gone afterwards: files are
  /// checked wholly before they are used, and a pipe can be read only once.
  ///
  /// - Throws: Whatever `body` throws, and the system's errors for the copy.
  static func withPath<Result>(_ argument: String, _ body: (String) throws -> Result) throws -> Result {
    guard argument == standardInput else { return try body(argument) }
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    defer { removeOrSay(folder) }
    // Ledgers keep a file's name: it should say where it came from.
    let copy = folder.appendingPathComponent("standard-input")
    try Data().write(to: copy)
    let file = try FileHandle(forWritingTo: copy)
    while let piece = try FileHandle.standardInput.read(upToCount: 1 << 20), !piece.isEmpty {
      try file.write(contentsOf: piece)
    }
    try file.close()
    return try body(copy.path)
  }

  /// The same for several files, of which one may be standard input.
  static func withPaths<Result>(_ arguments: [String], _ body: ([String]) throws -> Result) throws -> Result {
    guard arguments.contains(standardInput) else { return try body(arguments) }
    return try withPath(standardInput) { copy in
      try body(arguments.map { $0 == standardInput ? copy : $0 })
    }
  }

  private static func removeOrSay(_ folder: URL) {
    do { try FileManager.default.removeItem(at: folder) } catch {
      FileHandle.standardError.write(Data("buckia: \(folder.path) could not be removed: \(error)\n".utf8))
    }
  }

  /// The file, for people.
  static func name(of argument: String) -> String { argument == standardInput ? "standard input" : argument }
}
