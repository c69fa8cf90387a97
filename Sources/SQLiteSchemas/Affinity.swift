/// The type affinity of a column, from its declared type by SQLite's five rules.
///
/// See <https://sqlite.org/datatype3.html#determination_of_column_affinity>.
public enum Affinity: String, Sendable {
  case integer, text, blob, real, numeric

  /// Applies the rules in order: `INT`; `CHAR`, `CLOB`, `TEXT`; `BLOB` or no type; `REAL`, `FLOA`, `DOUB`; else numeric.
  public init(declaredType: String) {
    let type = declaredType.utf8.map(ASCIIName.folded)
    func holds(_ words: StaticString...) -> Bool { words.contains { Self.stands($0, in: type) } }
    if holds("int") {
      self = .integer
    } else if holds("char", "clob", "text") {
      self = .text
    } else if type.isEmpty || holds("blob") {
      self = .blob
    } else if holds("real", "floa", "doub") {
      self = .real
    } else {
      self = .numeric
    }
  }

  /// Whether a word stands anywhere in a type. Bytes, because a search in Swift's text costs a hundred times that.
  private static func stands(_ word: StaticString, in type: [UInt8]) -> Bool {
    let count = word.utf8CodeUnitCount
    // Sound: the word is a constant of the program, and as long as it says.
    let bytes = UnsafeBufferPointer(start: word.utf8Start, count: count)
    return type.indices.dropLast(count - 1).contains { start in
      bytes.indices.allSatisfy { type[start + $0] == bytes[$0] }
    }
  }
}
