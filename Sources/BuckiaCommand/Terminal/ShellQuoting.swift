import Buckia

extension String {
  /// The last part of a path.
  var fileName: String { split(separator: "/").last.map(String.init) ?? self }

  /// The text as one word of a shell command, escaped for printing: what we suggest can be typed as it stands.
  var shellQuoted: String {
    let plain = unicodeScalars.allSatisfy {
      !$0.isASCII || $0.properties.isAlphabetic || "0123456789/._-+=:@".unicodeScalars.contains($0)
    }
    guard isEmpty || !plain else { return escaped }
    let parts = split(separator: "'", omittingEmptySubsequences: false)
    return "'" + parts.map(\.escaped).joined(separator: #"'\''"#) + "'"
  }
}
