import Foundation

/// A file that was named on the command line, or standard input for `-`.
enum ArgumentFile {
  /// The argument that stands for standard input.
  static let standardInput = "-"

  /// Gives `body` the path of the file.
  ///
  /// Standard input is copied into a temporary file first, readable by its owner alone and gone afterwards: files are
  /// checked wholly before they are used, and a pipe can be read only once.
  ///
  /// - Throws: Whatever `body` throws, and the system's errors for the copy.
  static func withPath<Result>(_ argument: String, _ body: (String) throws -> Result) throws -> Result {
    guard argument == standardInput else { return try body(argument) }
    let copy = FileManager.default.temporaryDirectory.appendingPathComponent("standard-input-\(UUID().uuidString)")
    let descriptor = open(copy.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: copy.path]) }
    defer { unlink(copy.path) }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    while let piece = try FileHandle.standardInput.read(upToCount: 1 << 20), !piece.isEmpty {
      try file.write(contentsOf: piece)
    }
    try file.close()
    return try body(copy.path)
  }

  /// The file, for people.
  static func name(of argument: String) -> String { argument == standardInput ? "standard input" : argument }
}
