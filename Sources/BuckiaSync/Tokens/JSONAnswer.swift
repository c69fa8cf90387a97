import BuckiaBytes
import BuckiaStorage

/// The members of a JSON object that a server has answered with. Errors name the server, and never repeat what it has sent: there may be
/// secrets in it.
struct JSONAnswer: Sendable {
  let object: JSONObject
  /// The server, for errors.
  let origin: String

  /// How large an answer may be, in bytes. Documents with all keys of a large service have some hundred kilobytes.
  private static let byteLimit = 1 << 20

  /// Reads an answer.
  ///
  /// - Throws: `StorageError` with `invalidAnswer` when it is no JSON object, or too large; `CancellationError`.
  init(_ response: HTTPTransportResponse, from address: HTTPAddress) async throws {
    origin = address.origin
    do {
      let bytes = try await response.body.bytes(upTo: Self.byteLimit)
      guard case .object(let object) = try JSONParser.parse(bytes, numbers: .all) else {
        throw StorageError(.invalidAnswer, "\(address.shown) does not answer with a JSON object; check the address")
      }
      self.object = object
    } catch let error as JSONError {
      throw StorageError(
        .invalidAnswer, "\(address.shown) does not answer with JSON (\(error)); check the address", cause: error)
    }
  }

  /// A member's text; nil if there is none.
  ///
  /// - Throws: `StorageError` with `invalidAnswer` when it is something else, or too long.
  func text(_ name: String) throws(StorageError) -> String? {
    switch object[name] {
    case nil, .null?: return nil
    case .string(let text)?:
      guard text.utf8.count <= 64 << 10 else { throw fault(name) }
      return text
    default: throw fault(name)
    }
  }

  /// A member's text.
  ///
  /// - Throws: `StorageError` with `invalidAnswer` when there is none.
  func requiredText(_ name: String) throws(StorageError) -> String {
    guard let text = try text(name), !text.isEmpty else { throw fault(name) }
    return text
  }

  /// A member's number, which some servers write as text; nil if there is none.
  func number(_ name: String) throws(StorageError) -> Int64? {
    switch object[name] {
    case nil, .null?: return nil
    case .integer(let number)?: return number
    case .real(let number)?:
      guard let whole = Int64(exactly: number.rounded(.down)) else { throw fault(name) }
      return whole
    case .string(let text)?:
      guard let number = Int64(text) else { throw fault(name) }
      return number
    default: throw fault(name)
    }
  }

  /// A member's list of texts; nil if there is none.
  func texts(_ name: String) throws(StorageError) -> [String]? {
    switch object[name] {
    case nil, .null?: return nil
    case .array(let items)?:
      var texts: [String] = []
      for item in items {
        guard case .string(let text) = item else { throw fault(name) }
        texts.append(text)
      }
      return texts
    default: throw fault(name)
    }
  }

  /// A member's address, of a server to which secrets may go; nil if there is none.
  func address(_ name: String) throws(StorageError) -> HTTPAddress? {
    guard let text = try text(name) else { return nil }
    let address: HTTPAddress
    do { address = try HTTPAddress(text) } catch { throw fault(name) }
    guard address.isPrivate else { throw fault(name) }
    return address
  }

  /// A member's address.
  ///
  /// - Throws: `StorageError` with `invalidAnswer` when there is none.
  func requiredAddress(_ name: String) throws(StorageError) -> HTTPAddress {
    guard let address = try address(name) else { throw fault(name) }
    return address
  }

  func fault(_ name: String) -> StorageError {
    StorageError(
      .invalidAnswer, "\(origin) has answered without a usable \"\(name)\"; nothing was done with the answer")
  }
}

extension StringProtocol {
  /// Somebody else's text in an error: short and without what would act on a terminal.
  var shown: String {
    var shown = String.UnicodeScalarView()
    for scalar in unicodeScalars.prefix(200) {
      let isHarmless = scalar.value >= 0x20 && !(0x7F...0x9F).contains(scalar.value) && !scalar.properties.isBidiControl
      shown.append(isHarmless ? scalar : " ")
    }
    return String(shown)
  }
}
