/// Why bytes are not a JSON document that we read.
package struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The reasons that are told apart.
  package enum Code: String, Sendable {
    /// The bytes are no UTF-8.
    case notUTF8
    /// The document opens with a byte order mark.
    case byteOrderMark
    /// The document ends inside a value.
    case truncated
    /// A character stands where the grammar of RFC 8259 allows none like it.
    case unexpectedCharacter
    /// A control character stands unescaped in text.
    case controlCharacter
    /// An escape sequence that does not exist.
    case badEscape
    /// An escaped surrogate without its other half.
    case loneSurrogate
    /// Two members of an object have the same name, escapes decoded.
    case duplicateName
    /// Values are nested more than ``JSONValue/depthLimit`` deep.
    case tooDeep
    /// There are more than ``JSONValue/countLimit`` values.
    case tooManyValues
    /// A number has a fraction or an exponent, a leading zero, or is minus zero.
    case notAnInteger
    /// A number does not fit 64 bits.
    case outOfRange
    /// Something follows the document.
    case trailingData
  }

  /// What is wrong.
  package let code: Code
  /// Where, in bytes from 0.
  package let offset: Int

  /// Makes an error.
  package init(_ code: Code, offset: Int) {
    self.code = code
    self.offset = offset
  }

  /// What is wrong and where, for people.
  package var description: String { "\(what) (at byte \(offset))" }

  /// What is wrong, without the place.
  package var what: String {
    switch code {
    case .notUTF8: "the text is not UTF-8"
    case .byteOrderMark: "the text begins with a byte order mark"
    case .truncated: "the text ends inside a value"
    case .unexpectedCharacter: "a character does not belong there"
    case .controlCharacter: "a control character stands unescaped in a string"
    case .badEscape: "an escape sequence is unknown"
    case .loneSurrogate: "half of a surrogate pair is missing"
    case .duplicateName: "an object has two members of one name"
    case .tooDeep: "values are nested more than \(JSONValue.depthLimit) deep"
    case .tooManyValues: "there are more than \(JSONValue.countLimit) values"
    case .notAnInteger: "a number is not a plain integer"
    case .outOfRange: "a number does not fit 64 bits"
    case .trailingData: "something follows the document"
    }
  }
}
