/// An error as programs are told of it: with a code, a sentence for people, and where it is.
package struct FailureReport: Sendable {
  /// The kind of error: a word that stays.
  package let code: String
  /// What happened and what to do.
  package let message: String
  /// The file that it is about.
  package let path: String?
  /// Where in the file, in bytes.
  package let offset: Int?

  /// Puts one together.
  package init(code: String, message: String, path: String? = nil, offset: Int? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.offset = offset
  }

  /// Takes one of Buckia's. Which option of the command helps is of no use to a program that calls the library.
  package init(_ error: BuckiaError) {
    self.init(
      code: error.code.rawValue, message: error.description, path: error.context.path, offset: error.context.offset)
  }

  /// The document that `--json` prints instead of a result.
  package var json: JSONValue { ["version": 1, "error": details] }

  /// The error itself as `--json` has it.
  package var details: JSONValue {
    [
      "code": .string(code), "message": .string(message), "path": .text(path),
      "offset": offset.map { .number($0) } ?? .null,
    ]
  }
}
