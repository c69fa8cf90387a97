extension String {
  /// The text as one word of a shell command, escaped for printing: what we suggest can be typed as it stands.
  var shellQuoted: String {
    let plain =
      !isEmpty
      && utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "_"),
          UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: "@"), 0x80...:
          return true
        default: return false
        }
      }
    guard !plain else { return escaped }
    let parts = split(separator: "'", omittingEmptySubsequences: false)
    return "'" + parts.map(\.escaped).joined(separator: #"'\''"#) + "'"
  }
}
