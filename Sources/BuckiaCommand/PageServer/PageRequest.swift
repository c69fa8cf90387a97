/// What a browser asks for, once it is clear that it may.
package struct PageRequest: Sendable {
  /// What is to be done.
  package enum Method: Sendable {
    /// Something is wanted, and nothing is changed.
    case get
    /// Something is to be changed.
    case post
  }

  /// What is to be done.
  package let method: Method
  /// The parts of the path behind the token, of letters, digits and `-._` each; none for the first page.
  package let path: [String]
  /// The query of the address.
  package let query: FormFields
  /// The fields of the form that was sent; none where nothing is to be changed.
  package internal(set) var form = FormFields()
  /// The version that the browser has already, as it stands in the header; nil where it has none.
  package let knownVersion: String?
}
