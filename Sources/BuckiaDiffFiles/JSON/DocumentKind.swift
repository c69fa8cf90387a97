/// Which document of a diff file is being read: its member's name and the code of its faults.
struct DocumentKind {
  let member: String
  let code: DiffFileError.Code

  static let manifest = DocumentKind(member: "manifest.json", code: .badManifest)
  static let schema = DocumentKind(member: "schema.json", code: .badSchema)
  static let annotations = DocumentKind(member: "annotations", code: .badAnnotations)

  func fault(_ field: String, _ problem: String, table: String? = nil) -> DiffFileError {
    DiffFileError(code, "\"\(ShownText.line(field))\" \(problem)", member: member, table: table)
  }

  /// Parses the document's bytes.
  func parse(_ bytes: [UInt8]) throws(DiffFileError) -> JSONValue {
    do throws(JSONError) {
      return try JSONParser.parse(bytes)
    } catch {
      throw DiffFileError(.badJSON, error.what, member: member, offset: error.offset)
    }
  }
}
