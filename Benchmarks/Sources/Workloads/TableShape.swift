/// The kinds of table that cost differently: how rows are found decides how pages are touched.
public enum TableShape: String, CaseIterable, Sendable {
  /// A rowid table with a random text key in an index of its own.
  case textKey = "TEXT key"
  /// A rowid table whose key is the rowid.
  case integerKey = "INTEGER key"
  /// A table stored in its key, a random text.
  case withoutRowID = "WITHOUT ROWID"

  /// The table `t`: a key and four columns of different kinds, some 120 bytes a row.
  var definition: String {
    let columns = "a INTEGER, b TEXT, c REAL, d BLOB"
    switch self {
    case .textKey: return "CREATE TABLE t(k TEXT PRIMARY KEY, \(columns))"
    case .integerKey: return "CREATE TABLE t(k INTEGER PRIMARY KEY, \(columns))"
    case .withoutRowID: return "CREATE TABLE t(k TEXT PRIMARY KEY, \(columns)) WITHOUT ROWID"
    }
  }

  /// The key of row `i`, as SQL. Text keys look random (Knuth's multiplicative hash) and are the same in every run.
  var key: String {
    switch self {
    case .integerKey: "i"
    case .textKey, .withoutRowID: "printf('%08x%08x%08x', i * 2654435761 % 4294967296, i * 40503 % 65536, i)"
    }
  }
}
