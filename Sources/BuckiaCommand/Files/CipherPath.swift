import ArgumentParser
import Buckia

/// What `encrypt` and `decrypt` read and write.
struct CipherPath {
  private static let standardStream = "-"
  private static let suffix = ".age"

  let input: String
  let output: String?

  /// Whether the result goes to standard output, as that of standard input does unless told otherwise.
  var isStandardOutput: Bool { output == Self.standardStream || (output == nil && input == Self.standardStream) }

  /// Where the bytes come from.
  var source: CipherSource { ArgumentFile.cipherSource(input) }

  /// The path of the encrypted file.
  var encrypted: String { output ?? (isStandardOutput ? Self.standardStream : name + Self.suffix) }

  /// The path of the decrypted file; nil when it has to be given.
  var decrypted: String? {
    if let output { return output }
    if isStandardOutput { return Self.standardStream }
    guard name.hasSuffix(Self.suffix), name.utf8.count > Self.suffix.utf8.count else { return nil }
    return String(name.dropLast(Self.suffix.count))
  }

  private var name: String { input.fileName }

  /// Where the result goes.
  func target(_ path: String, replacing isReplacing: Bool) -> CipherTarget {
    guard isStandardOutput else { return .path(path, replacing: isReplacing) }
    return .stream { try StandardStream.output.write($0) }
  }

  /// Refuses what would read or write two things at one place.
  func validate(_ options: OutputOptions, passphraseFile: String?) throws {
    guard !options.json || !isStandardOutput else {
      throw ValidationError("--json and the file itself would both go to standard output; name a file with -o.")
    }
    guard input != Self.standardStream || passphraseFile != Self.standardStream else {
      throw ValidationError("The file and the passphrase cannot both come from standard input.")
    }
  }

  /// Tells what was written.
  static func report(_ path: String, _ byteCount: Int64, _ verb: String, on console: Console) throws {
    guard path != standardStream else { return }
    try console.say("\(verb) into \(path.escaped), \(byteCount.counted("byte")).")
    try console.document(["version": 1, "path": .text(path), "bytes": .integer(byteCount)])
  }
}
