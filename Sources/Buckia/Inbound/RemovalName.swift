/// The name that a file has while it is being removed: `.buckia-<random>.<its own name>`.
///
/// A file gets it in order to be looked at once more where nothing can take its place. If the process ends just then, the
/// file stays under this name, and whoever lists the folder next still takes it for what it is.
enum RemovalName {
  private static let prefix = ".buckia-"
  /// The most bytes that a file's name has.
  private static let nameBytes = 255

  /// A new name for a file; nil where it is too long for one.
  static func make(for plainName: String) -> String? {
    let name = "\(prefix)\(String(UInt64.random(in: 0...UInt64.max), radix: 36)).\(plainName)"
    return name.utf8.count <= nameBytes ? name : nil
  }

  /// The file's own name; nil for names of any other form.
  static func plainName(of name: String) -> String? {
    guard name.utf8.starts(with: prefix.utf8) else { return nil }
    let rest = name.utf8.dropFirst(prefix.utf8.count)
    guard let dot = rest.firstIndex(of: UInt8(ascii: ".")), dot > rest.startIndex else { return nil }
    return String(Substring(rest[rest.index(after: dot)...]))
  }
}
