import Crypto

/// The beginning of an encrypted file: its key, wrapped for each recipient, and a seal over that.
struct AgeHeader {
  /// The first line.
  static let intro = Array("age-encryption.org/v1".utf8)
  /// What every version's first line begins with.
  static let introPrefix = Array("age-encryption.org/".utf8)
  /// What the last line begins with: the end of what is sealed.
  static let end = Array("---".utf8)
  /// How many recipients a file may have.
  static let maximumStanzas = 64
  /// How many bytes a header may have: more than 64 recipients of the largest kind need.
  static let maximumBytes = 256 << 10

  /// The wrapped keys.
  let stanzas: [Stanza]
  /// What is sealed: everything up to the three dashes, with them.
  let sealed: [UInt8]
  /// The seal.
  let seal: [UInt8]

  /// A header that was read.
  init(stanzas: [Stanza], sealed: [UInt8], seal: [UInt8]) {
    self.stanzas = stanzas
    self.sealed = sealed
    self.seal = seal
  }

  /// A new header.
  init(_ stanzas: [Stanza], of key: FileKey) {
    self.stanzas = stanzas
    sealed = Self.intro + [UInt8(ascii: "\n")] + stanzas.flatMap(\.text) + Self.end
    seal = key.seal(of: sealed)
  }

  /// The header as it stands in the file.
  var text: [UInt8] { sealed + [UInt8(ascii: " ")] + Base64.encode(seal) + [UInt8(ascii: "\n")] }
}
