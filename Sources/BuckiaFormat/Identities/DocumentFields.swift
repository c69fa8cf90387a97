import BuckiaBytes
import SQLiteSchemas

/// The members of an object, taken one by one; whatever is left at the end is refused.
struct DocumentFields {
  private var remaining: JSONObject
  /// What errors call the document: "the card", "the identity file".
  private let subject: String
  private let code: IdentityError.Code

  init(_ value: JSONValue, of subject: String, _ code: IdentityError.Code) throws(IdentityError) {
    self.subject = subject
    self.code = code
    guard case .object(let object) = value else { throw IdentityError(code, "\(subject) is no object") }
    remaining = object
  }

  init(parsing bytes: [UInt8], of subject: String, _ code: IdentityError.Code) throws(IdentityError) {
    let value: JSONValue
    do throws(JSONError) { value = try JSONParser.parse(bytes) } catch {
      throw IdentityError(code, "\(subject) is not in order: \(error)")
    }
    try self.init(value, of: subject, code)
  }

  mutating func take(_ name: String) -> JSONValue? { remaining.take(name) }

  /// Requires the version of the format. A newer one may have other rules for everything else.
  mutating func requireFormat(_ format: Int64) throws(IdentityError) {
    guard case .integer(let found) = take("format") else { throw invalid("format", "is no number") }
    guard found == format else {
      throw IdentityError(
        .unsupportedFormat,
        "\(subject) has format \(found), and this version of Buckia reads format \(format); update Buckia")
    }
  }

  mutating func string(_ name: String) throws(IdentityError) -> String {
    guard case .string(let text) = take(name) else { throw invalid(name, "is no text") }
    return text
  }

  /// A time in milliseconds since 1970.
  mutating func time(_ name: String) throws(IdentityError) -> Int64 {
    guard case .integer(let time) = take(name), time >= 0 else { throw invalid(name, "is no time") }
    return time
  }

  /// The same for an optional member.
  mutating func optionalTime(_ name: String) throws(IdentityError) -> Int64? {
    switch take(name) {
    case nil: return nil
    case .integer(let time)? where time >= 0: return time
    default: throw invalid(name, "is no time")
    }
  }

  mutating func key<Key: FixedBytes>(_ name: String, as type: Key.Type) throws(IdentityError) -> Key {
    guard case .string(let text) = take(name), let key = Key(hex: text) else { throw invalid(name, "is no key") }
    return key
  }

  mutating func secret(_ name: String) throws(IdentityError) -> PrivateKey {
    guard case .string(let text) = take(name), let key = PrivateKey(hex: text) else {
      throw invalid(name, "is no key")
    }
    return key
  }

  mutating func list(_ name: String, limit: Int) throws(IdentityError) -> [JSONValue] {
    guard case .array(let values) = take(name), values.count <= limit else {
      throw invalid(name, "is no list of at most \(limit)")
    }
    return values
  }

  func finish() throws(IdentityError) {
    guard let unknown = remaining.members.first?.name else { return }
    throw IdentityError(code, "\(subject) has \(EscapedText.quoted(unknown)), which is unknown")
  }

  func invalid(_ name: String, _ what: String) -> IdentityError {
    IdentityError(code, "\"\(name)\" of \(subject) \(what)")
  }
}
