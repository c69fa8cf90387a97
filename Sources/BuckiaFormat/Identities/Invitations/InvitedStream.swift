import BuckiaBytes

/// The stream that an invitation offers: what the author is going to send, and the answer acknowledges.
package struct InvitedStream: Equatable, Sendable {
  /// The stream: 16 bytes.
  package let stream: [UInt8]
  /// The incarnation of the replica whose stream it is: 16 bytes.
  package let incarnation: [UInt8]

  /// Names a stream.
  package init(stream: [UInt8], incarnation: [UInt8]) {
    self.stream = stream
    self.incarnation = incarnation
  }
}

extension DocumentFields {
  /// 16 bytes in hex.
  mutating func sixteenBytes(_ name: String) throws(IdentityError) -> [UInt8] {
    guard let bytes = HexText.bytes(try string(name)), bytes.count == 16 else {
      throw invalid(name, "is not 32 hexadecimal digits")
    }
    return bytes
  }

  mutating func optionalString(_ name: String) throws(IdentityError) -> String? {
    switch take(name) {
    case nil: return nil
    case .string(let text)?: return text
    default: throw invalid(name, "is no text")
    }
  }

  mutating func strings(_ name: String, limit: Int) throws(IdentityError) -> [String] {
    var texts: [String] = []
    for value in try list(name, limit: limit) {
      guard case .string(let text) = value else { throw invalid(name, "has something other than texts") }
      texts.append(text)
    }
    return texts
  }
}
