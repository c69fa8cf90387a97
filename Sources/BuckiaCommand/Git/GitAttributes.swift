#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A file that says by patterns how git treats files. See <https://git-scm.com/docs/gitattributes>.
struct GitAttributes {
  /// Where it is.
  let path: String
  private var lines: [[UInt8]] = []
  private let original: [[UInt8]]

  /// What stands behind the patterns of databases.
  private static let attributes = "diff=buckia merge=buckia"

  /// Reads a file, which need not exist.
  init(at path: String) throws {
    self.path = path
    if FileManager.default.fileExists(atPath: path) {
      let bytes = try Array(Data(contentsOf: URL(fileURLWithPath: path)))
      lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false).map(Array.init)
      if lines.last?.isEmpty == true { lines.removeLast() }
    }
    original = lines
  }

  /// Whether anything has been added or removed.
  var isChanged: Bool { lines != original }

  /// The line for a pattern.
  static func line(for pattern: String) -> String { "\(quoted(pattern)) \(attributes)" }

  /// Adds a pattern, unless it is there.
  mutating func add(_ pattern: String) {
    let line = Array(Self.line(for: pattern).utf8)
    if !lines.contains(line) { lines.append(line) }
  }

  /// Removes all patterns of databases.
  mutating func removeAll() {
    let end = Array(" \(Self.attributes)".utf8)
    lines.removeAll { $0.suffix(end.count).elementsEqual(end) && $0.first != UInt8(ascii: "#") }
  }

  /// Writes the file; one without lines goes.
  func write() throws {
    guard isChanged else { return }
    // Where the file is a link, it stays one.
    let file = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    if lines.isEmpty { return try FileManager.default.removeItem(at: file) }
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(lines.flatMap { $0 + [0x0a] }).write(to: file, options: .atomic)
  }

  /// A pattern with spaces stands in quotes, written as in C.
  private static func quoted(_ pattern: String) -> String {
    guard pattern.utf8.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: "\"") }) || pattern.hasPrefix("#") else {
      return pattern
    }
    let escaped = pattern.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\t", with: "\\t")
    return "\"\(escaped)\""
  }
}
