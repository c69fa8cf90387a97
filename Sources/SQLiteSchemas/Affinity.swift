/// The type affinity of a column, from its declared type by SQLite's five rules.
///
/// See <https://sqlite.org/datatype3.html#determination_of_column_affinity>.
public enum Affinity: String, Sendable {
  case integer, text, blob, real, numeric

  /// Applies the rules in order: `INT`; `CHAR`, `CLOB`, `TEXT`; `BLOB` or no type; `REAL`, `FLOA`, `DOUB`; else numeric.
  public init(declaredType: String) {
    let type = ASCIIName.uppercased(declaredType)
    if type.contains("INT") {
      self = .integer
    } else if type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT") {
      self = .text
    } else if type.isEmpty || type.contains("BLOB") {
      self = .blob
    } else if type.contains("REAL") || type.contains("FLOA") || type.contains("DOUB") {
      self = .real
    } else {
      self = .numeric
    }
  }
}
