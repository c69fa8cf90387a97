import Buckia

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

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
    let copy = folder.appendingPathComponent("standard-input").path
    try copyInput(to: copy)
    return try body(copy)
  }

  /// The same for several files, of which one may be standard input.
  static func withPaths<Result>(_ arguments: [String], _ body: ([String]) throws -> Result) throws -> Result {
    guard arguments.contains(standardInput) else { return try body(arguments) }
    return try withPath(standardInput) { copy in
      try body(arguments.map { $0 == standardInput ? copy : $0 })
    }
  }

  private static func copyInput(to path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw failure("cannot be kept") }
    defer { close(file) }
    var piece = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = read(STDIN_FILENO, &piece, piece.count)
      if count == 0 { return }
      if count < 0 {
        guard errno == EINTR else { throw failure("cannot be read") }
        continue
      }
      var done = 0
      while done < count {
        let written = piece[done..<count].withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        if written >= 0 { done += written } else if errno != EINTR { throw failure("cannot be kept") }
      }
    }
  }

  private static func failure(_ what: String) -> BuckiaError {
    BuckiaError(.unwritable, "standard input \(what): \(String(cString: strerror(errno)))")
  }

  private static func removeOrSay(_ folder: URL) {
    do { try FileManager.default.removeItem(at: folder) } catch {
      StandardStream.error.tell("buckia: \(folder.path) could not be removed: \(error)\n")
    }
  }

  /// The file, for people.
  static func name(of argument: String) -> String { argument == standardInput ? "standard input" : argument }
}
