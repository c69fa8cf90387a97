/// The addresses of the pages.
struct SiteAddresses: Sendable {
  /// What all of them begin with: the token between two slashes.
  private let root: String

  init(_ token: PageToken) { root = "/\(token.text)/" }

  /// Where the version of everything is found.
  var state: String { "\(root)state" }

  /// - Parameters:
  ///   - path: What stands behind the token.
  ///   - fields: The query.
  func address(_ path: String = "", _ fields: [(name: String, value: String)] = []) -> String {
    fields.isEmpty ? "\(root)\(path)" : "\(root)\(path)?\(FormFields(fields).encoded)"
  }
}
