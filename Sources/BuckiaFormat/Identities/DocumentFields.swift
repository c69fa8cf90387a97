import BuckiaBytes

/// A document about people, as errors name it: "the card", "the identity file".
struct IdentityDocument: JSONDocument {
  let subject: String
  let code: IdentityError.Code

  func invalid(_ field: String, _ problem: String) -> IdentityError {
    IdentityError(code, "\(field.isEmpty ? "" : "\"\(EscapedText.line(field))\" of ")\(subject) \(problem)")
  }
}

/// The fields of such a document.
typealias DocumentFields = JSONFields<IdentityDocument>

extension DocumentFields {
  init(_ value: JSONValue, of subject: String, _ code: IdentityError.Code) throws(IdentityError) {
    try self.init(value, of: IdentityDocument(subject: subject, code: code))
  }

  init(parsing bytes: [UInt8], of subject: String, _ code: IdentityError.Code) throws(IdentityError) {
    let value: JSONValue
    do throws(JSONError) { value = try JSONParser.parse(bytes) } catch {
      throw IdentityError(code, "\(subject) is not in order: \(error)")
    }
    try self.init(value, of: subject, code)
  }

  /// Requires the version of the format. A newer one may have other rules for everything else.
  mutating func requireFormat(_ format: Int64) throws(IdentityError) {
    let found = try integer("format", in: .min ... .max)
    guard found == format else {
      throw IdentityError(
        .unsupportedFormat,
        "\(document.subject) has format \(found), and this version of Buckia reads format \(format); update Buckia")
    }
  }

  mutating func secret(_ name: String) throws(IdentityError) -> PrivateKey {
    guard let key = PrivateKey(hex: try string(name)) else { throw invalid(name, "is no key") }
    return key
  }
}
