import Buckia
import CBuckia

// The values of the C enums. Any other number is misuse.

extension ConflictPolicy {
  init(_ policy: buckia_policy) throws {
    switch policy {
    case BUCKIA_KEEP_LOCAL: self = .keepLocal
    case BUCKIA_TAKE_INCOMING: self = .takeIncoming
    case BUCKIA_ABORT: self = .abort
    case BUCKIA_LATEST: self = .latest
    default: throw Arguments.misuse("\(policy.rawValue) is no policy")
    }
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
    switch mode {
    case BUCKIA_SCHEMA_ADDITIVE: self = .additive
    case BUCKIA_SCHEMA_EXACT: self = .exact
    case BUCKIA_SCHEMA_HOLD: self = .hold
    case BUCKIA_SCHEMA_ADOPT: self = .adopt
    default: throw Arguments.misuse("\(mode.rawValue) is no way to treat the schema")
    }
  }
}

extension buckia_trust {
  /// The mode; nil for no change.
  var mode: TrustMode? {
    get throws {
      switch self {
      case BUCKIA_TRUST_AS_IS: nil
      case BUCKIA_TRUST_ANY: .any
      case BUCKIA_TRUST_KNOWN: .known
      default: throw Arguments.misuse("\(rawValue) is no trust mode")
      }
    }
  }
}

extension buckia_method {
  /// The method; nil to choose the best for each table.
  var method: DiffMethod? {
    get throws {
      switch self {
      case BUCKIA_METHOD_AUTO: nil
      case BUCKIA_METHOD_PAGES: .pages
      case BUCKIA_METHOD_ROWS: .rows
      case BUCKIA_METHOD_SESSION: .session
      default: throw Arguments.misuse("\(rawValue) is no method")
      }
    }
  }
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
  init(_ home: UnsafePointer<CChar>?, _ passphrase: UnsafePointer<CChar>?) throws {
    let path = try Arguments.optionalText(home, "home")
    self = path.map { BuckiaHome(path: $0) } ?? .standard
    self.passphrase = try Arguments.optionalText(passphrase, "the passphrase").map { IdentityPassphrase($0) }
  }
}

extension FileDecryption {
  /// What opens encrypted files; nil if nothing is given.
  static func given(
    _ identities: UnsafePointer<UnsafePointer<CChar>?>?, _ count: Int, _ passphrase: UnsafePointer<CChar>?,
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
