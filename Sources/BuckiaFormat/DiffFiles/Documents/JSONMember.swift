import BuckiaBytes

/// The fields of a member's document.
typealias MemberFields = JSONFields<JSONMember>

/// A member of the archive that is a JSON document: its name, and the code of errors about what it says.
struct JSONMember: JSONDocument {
  let name: String
  let code: DiffFileError.Code

  static let manifest = JSONMember(name: MemberName.manifest, code: .badManifest)
  static let schema = JSONMember(name: MemberName.schema, code: .badSchema)
  static let annotations = JSONMember(name: MemberName.annotations, code: .badAnnotations)

  func invalid(_ field: String, _ problem: String) -> DiffFileError { invalid(field, problem, table: nil) }

  func invalid(_ field: String, _ problem: String, table: String?) -> DiffFileError {
    DiffFileError(code, "\"\(EscapedText.line(field))\" \(problem)", member: name, table: table)
  }

  /// Parses the document's bytes.
  func parse(_ bytes: [UInt8]) throws(DiffFileError) -> JSONValue {
    do throws(JSONError) {
      return try JSONParser.parse(bytes)
    } catch {
      throw DiffFileError(.badJSON, error.what, member: name, offset: error.offset)
    }
  }
}
