/// A file of identities as `age-keygen` writes it: one a line, with comments and empty lines between them.
package enum IdentityLines {
  /// How many bytes such a file may have.
  package static let maximumBytes = 1 << 20

  /// Reads all identities of a file.
  ///
  /// - Throws: `AgeError` that names the line and does not show it.
  package static func parse(_ bytes: [UInt8]) throws(AgeError) -> [AgeIdentity] {
    var identities: [AgeIdentity] = []
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let text = String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
      if text.isEmpty || text.utf8.first == UInt8(ascii: "#") { continue }
      do { identities.append(try AgeIdentity(parsing: text)) } catch {
        throw AgeError(error.code, "line \(index + 1): \(error)")
      }
    }
    guard !identities.isEmpty else { throw AgeError(.invalidIdentity, "there is no identity in it") }
    return identities
  }
}
