import BuckiaBytes

/// The type affinity of a column. See <https://sqlite.org/datatype3.html#determination_of_column_affinity>.
package enum Affinity: String, Sendable {
  case integer, text, blob, real, numeric

  /// Determines the affinity of a declared type by the five rules of SQLite.
  ///
  /// - Parameter declaredType: The type as it is written in the CREATE TABLE statement; empty for none.
  package init(declaredType: String) {
    let type = declaredType.utf8.map(ASCIIName.folded)
    func contains(_ words: StaticString...) -> Bool { words.contains { Self.occurs($0, in: type) } }
    if contains("int") {
      self = .integer
    } else if contains("char", "clob", "text") {
      self = .text
    } else if type.isEmpty || contains("blob") {
      self = .blob
    } else if contains("real", "floa", "doub") {
      self = .real
    } else {
      self = .numeric
    }
  }

  /// Whether a word occurs in a type. Compares bytes, because a search in a `String` takes a hundred times as long.
  private static func occurs(_ word: StaticString, in type: [UInt8]) -> Bool {
    let count = word.utf8CodeUnitCount
    // Sound: a static string lives as long as the program.
    let bytes = UnsafeBufferPointer(start: word.utf8Start, count: count)
    return type.indices.dropLast(count - 1).contains { start in
      bytes.indices.allSatisfy { type[start + $0] == bytes[$0] }
    }
  }
}
