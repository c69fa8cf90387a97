import Crypto
import SQLiteSchemas

/// A small signed document as one line of text, which survives being pasted into a message:
/// `buckia-KIND-1:` and, in base64url with full stops between them, the document and its signatures.
///
/// Every signature is Ed25519 over `buckia/KIND/v1\n` and the document's exact bytes: a signature of one kind is
/// invalid for any other. White space is ignored, since mail programs break long lines.
struct SignedText {
  /// The kind of a document.
  enum Kind: String, CaseIterable {
    case card, rotation, invitation, acceptance

    /// What errors call it.
    var noun: String {
      switch self {
      case .card, .rotation, .invitation: rawValue
      case .acceptance: "answer to an invitation"
      }
    }

    /// The same with its article.
    var described: String { (self == .invitation || self == .acceptance ? "an " : "a ") + noun }

    /// What takes it.
    fileprivate var taker: String {
      switch self {
      case .card, .rotation: "buckia contact add"
      case .invitation: "buckia accept"
      case .acceptance: "buckia apply"
      }
    }

    fileprivate var signatureCount: Int { self == .rotation ? 2 : 1 }
    fileprivate var label: String { "buckia-\(rawValue)-1" }
    var code: IdentityError.Code { self == .card || self == .rotation ? .invalidCard : .invalidInvitation }
  }

  /// The maximum size of a whole text in bytes.
  static let byteLimit = 8_192

  let kind: Kind
  /// The exact bytes that were signed.
  let document: [UInt8]
  let signatures: [[UInt8]]

  /// Signs a document.
  ///
  /// - Throws: `IdentityError` with code `invalidFile` when a key is none.
  init(_ kind: Kind, _ document: [UInt8], signedBy keys: [PrivateKey]) throws(IdentityError) {
    self.kind = kind
    self.document = document
    do {
      signatures = try keys.map { key in
        let signer = try Curve25519.Signing.PrivateKey(rawRepresentation: key.bytes)
        return Array(try signer.signature(for: Self.message(kind, document)))
      }
    } catch {
      throw IdentityError(.invalidFile, "it cannot be signed: \(error)")
    }
  }

  /// Parses a text, without verifying it.
  ///
  /// - Parameter expected: The accepted kinds.
  /// - Throws: `IdentityError` with the code of what was expected (`invalidCard`, `invalidInvitation`), or `unsupportedFormat` for
  ///   one of a newer version.
  init(_ text: String, as expected: Set<Kind> = [.card, .rotation]) throws(IdentityError) {
    // The least that is expected: a card rather than a rotation.
    let usual = Kind.allCases.first(where: expected.contains) ?? .card
    guard text.utf8.count <= Self.byteLimit else {
      throw IdentityError(
        usual.code, "it is longer than \(usual.described) can be (\(Self.byteLimit) bytes)")
    }
    let bytes = text.utf8.filter { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { throw Self.isNone(usual) }
    let label = String(decoding: bytes[..<colon], as: UTF8.self)
    guard let kind = Kind.allCases.first(where: { label == $0.label }) else {
      guard let newer = Kind.allCases.first(where: { label.hasPrefix("buckia-\($0.rawValue)-") }) else {
        throw Self.isNone(usual)
      }
      throw IdentityError(
        .unsupportedFormat, "it is \(newer.described) that a newer version of Buckia made; update Buckia")
    }
    guard expected.contains(kind) else {
      throw IdentityError(
        usual.code, "it is \(kind.described) and not \(usual.described); `\(kind.taker)` takes it")
    }
    let parts = bytes[(colon + 1)...].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      .map { Self.decoded($0) }
    guard let document = parts.first ?? nil, parts.count == 1 + kind.signatureCount else {
      throw Self.isDamaged(kind)
    }
    self.kind = kind
    self.document = document
    var signatures: [[UInt8]] = []
    for part in parts.dropFirst() {
      guard let part, part.count == 64 else { throw Self.isDamaged(kind) }
      signatures.append(part)
    }
    self.signatures = signatures
  }

  /// The rotations in a text that has nothing else; empty for a text that does not begin with one.
  static func rotations(in text: String) -> [String] {
    let label = "\(Kind.rotation.label):"
    guard text.drop(while: \.isWhitespace).hasPrefix(label) else { return [] }
    return text.split(separator: label).filter { !$0.allSatisfy(\.isWhitespace) }.map { label + $0 }
  }

  /// The line, without a line end.
  var text: String {
    "\(kind.label):" + ([document] + signatures).map(Self.encoded).joined(separator: ".")
  }

  /// Requires that a signature is a key's.
  ///
  /// - Throws: `IdentityError` with code `badSignature`.
  func requireSignature(_ index: Int, by key: SigningKey) throws(IdentityError) {
    guard key.hasSigned(Self.message(kind, document), signatures[index]) else {
      throw IdentityError(
        .badSignature, "its signature does not match: it was altered or forged; ask its owner to send it again")
    }
  }

  private static func message(_ kind: Kind, _ document: [UInt8]) -> [UInt8] {
    Array("buckia/\(kind.rawValue)/v1\n".utf8) + document
  }

  // MARK: base64url

  private static func encoded(_ bytes: [UInt8]) -> String {
    let text = Base64.encode(bytes).map { byte in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      default: byte
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
    Base64.decode(
      text.map { byte in
        switch byte {
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        // The characters of the other alphabet are invalid: one document has one text.
        case UInt8(ascii: "+"), UInt8(ascii: "/"): 0
        default: byte
        }
      })
  }

  private static func isNone(_ kind: Kind) -> IdentityError {
    let source =
      switch kind {
      case .card, .rotation: "its owner prints it with `buckia identity show`"
      case .invitation: "`buckia invite` makes it"
      case .acceptance: "`buckia accept` makes it"
      }
    return IdentityError(kind.code, "it is no \(kind.noun): one begins with \(kind.label): (\(source))")
  }

  private static func isDamaged(_ kind: Kind) -> IdentityError {
    IdentityError(kind.code, "a part of the \(kind.noun) is missing or damaged; ask its owner to send it again")
  }
}
