import Buckia
import CBuckia

// The values of the C enums. Any other number is misuse.

/// The value at a number of a C enum.
///
/// - Throws: `BuckiaError` with `misuse` for a number that stands for none.
private func choice<Value>(_ number: UInt32, of values: [Value], _ what: String) throws -> Value {
  guard let index = Int(exactly: number), values.indices.contains(index) else {
    throw Arguments.misuse("\(number) is no \(what)")
  }
  return values[index]
}

extension ConflictPolicy {
  init(_ policy: buckia_policy) throws {
    self = try choice(policy.rawValue, of: [.keepLocal, .takeIncoming, .abort, .latest], "policy")
  }
}

extension ConflictPolicies {
  /// Policies of tables and columns, and one for everything else.
  init(_ otherwise: buckia_policy, _ policies: UnsafePointer<buckia_table_policy>?, _ count: Int) throws {
    self.init(try ConflictPolicy(otherwise))
    for policy in try Arguments.array(policies, count, "policies") {
      let table = try Arguments.text(policy.table, "the table of a policy")
      let column = try Arguments.optionalText(policy.column, "the column of a policy")
      self[column.map { .column($0, of: table) } ?? .table(table)] = try ConflictPolicy(policy.policy)
    }
  }
}

extension SchemaMode {
  init(_ mode: buckia_schema) throws {
    self = try choice(mode.rawValue, of: [.additive, .exact, .hold, .adopt], "way to treat the schema")
  }
}

extension CopyPolicy {
  init(_ policy: buckia_copies) throws {
    self = try choice(policy.rawValue, of: [.ask, .same, .apart], "way to treat copies")
  }
}

extension buckia_trust {
  /// The mode; nil for no change.
  var mode: TrustMode? { get throws { try choice(rawValue, of: [nil, .any, .known], "trust mode") } }
}

extension buckia_method {
  /// The method; nil to choose the best for each table.
  var method: DiffMethod? { get throws { try choice(rawValue, of: [nil, .pages, .rows, .session], "method") } }
}

extension buckia_conflict_kind {
  /// The kind; nil for any.
  var kind: ConflictKind? {
    get throws {
      if rawValue == 0 { return nil }
      guard let kind = ConflictKind.allCases.first(where: { $0.cValue == self }) else {
        throw Arguments.misuse("\(rawValue) is no kind of conflict")
      }
      return kind
    }
  }
}

extension ConflictFilter {
  init(_ pointer: UnsafePointer<buckia_conflict_filter>?) throws {
    let given = try Arguments.options(pointer, buckia_conflict_filter())
    self.init()
    table = try Arguments.optionalText(given.table, "table")
    diff = try Arguments.optionalText(given.diff, "diff")
    kind = try given.kind.kind
    isOpen = given.open
  }
}

extension BuckiaHome {
  /// The folder of a person's own files; NULL for the usual one.
  init(_ home: CString, _ passphrase: CString) throws {
    let path = try Arguments.optionalText(home, "home")
    self = path.map { BuckiaHome(path: $0) } ?? .standard
    self.passphrase = try Arguments.optionalText(passphrase, "the passphrase").map { IdentityPassphrase($0) }
  }
}

extension FileDecryption {
  /// What opens encrypted files; nil if nothing is given.
  static func given(
    _ identities: CStrings, _ count: Int, _ passphrase: CString,
    in home: BuckiaHome
  ) throws -> FileDecryption? {
    let files = try Arguments.texts(identities, count, "identities")
    let passphrase = try Arguments.optionalText(passphrase, "passphrase")
    guard !files.isEmpty || passphrase != nil else { return nil }
    return try FileDecryption(
      identities: files.flatMap { try AgeIdentity.identities(inFile: $0, passphrase: home.passphrase) },
      passphrase: passphrase)
  }
}

extension Arguments {
  /// Columns by table.
  static func columns(
    _ pointer: UnsafePointer<buckia_table_columns>?, _ count: Int, _ name: String
  ) throws -> [TableName: [String]] {
    try array(pointer, count, name).reduce(into: [:]) { columns, table in
      columns[TableName(try text(table.table, "the table of \(name)")), default: []] +=
        try texts(table.columns, table.column_count, "the columns of \(name)")
    }
  }
}
