import BuckiaBytes
import SQLiteSchemas

/// The keys of a diff's rows in other replicas, if known to the sender: replicas assign integer keys independently, and
/// one key can identify different rows, and one row have different keys.
package struct RowKeys: Equatable, Sendable {
  /// Neighbouring changes whose rows the same replicas call something.
  package struct Run: Equatable, Sendable {
    /// The number of changes, at least 1.
    package var count: Int64
    /// What replicas call the rows; empty if the sender alone does.
    package var names: [Names]

    /// Creates a run.
    package init(count: Int64, names: [Names] = []) {
      self.count = count
      self.names = names
    }
  }

  /// The keys of a run's rows in one replica.
  package struct Names: Equatable, Sendable {
    /// The replica: an index into ``RowKeys/replicas``.
    package var replica: Int
    /// Its key of each row; empty if it calls them as the changes do.
    package var keys: [Int64]
    /// The hash of each row as the sender last took it from that replica; empty if the rows have not changed since.
    package var versions: [UInt64]
    /// The number of rows with this content that were inserted at that incarnation of a replica, and the number of
    /// those that were deleted; nil for rows with a key.
    package var copies: Copies?

    /// Names rows.
    package init(replica: Int, keys: [Int64] = [], versions: [UInt64] = [], copies: Copies? = nil) {
      self.replica = replica
      self.keys = keys
      self.versions = versions
      self.copies = copies
    }
  }

  /// The number of rows with one content that a replica has inserted.
  package struct Copies: Equatable, Sendable {
    /// The number of inserted rows.
    package var inserted: Int64
    /// The number of these that were deleted.
    package var deleted: Int64

    /// Counts rows.
    package init(inserted: Int64, deleted: Int64) {
      self.inserted = inserted
      self.deleted = deleted
    }
  }

  /// A row that rows of the diff refer to, and that a replica calls otherwise than the sender.
  package struct Reference: Equatable, Sendable {
    /// Its table.
    package var table: TableName
    /// Its key at the sender.
    package var key: Int64
    /// The replica: an index into ``RowKeys/replicas``.
    package var replica: Int
    /// Its key there.
    package var name: Int64

    /// Names a row.
    package init(table: TableName, key: Int64, replica: Int, name: Int64) {
      self.table = table
      self.key = key
      self.replica = replica
      self.name = name
    }
  }

  /// Columns that refer to a table without a foreign key.
  package struct Link: Equatable, Sendable {
    /// The table that refers.
    package var table: TableName
    /// Its columns.
    package var columns: [String]
    /// The table that is referred to.
    package var parent: TableName
    /// Its columns; empty for the primary key.
    package var parentColumns: [String]

    /// Declares a reference.
    package init(table: TableName, columns: [String], parent: TableName, parentColumns: [String]) {
      self.table = table
      self.columns = columns
      self.parent = parent
      self.parentColumns = parentColumns
    }
  }

  /// The replicas, none twice.
  package var replicas: [ReplicaID]
  /// The runs, in the order of the changes; empty if the sender alone has given all keys.
  package var runs: [Run]
  /// Rows that are referred to.
  package var references: [Reference]
  /// References that no foreign key declares.
  package var links: [Link]

  /// Creates the annotations.
  package init(
    replicas: [ReplicaID] = [], runs: [Run] = [], references: [Reference] = [], links: [Link] = []
  ) {
    self.replicas = replicas
    self.runs = runs
    self.references = references
    self.links = links
  }

  /// True if there are no runs, references and links.
  package var isEmpty: Bool { runs.isEmpty && references.isEmpty && links.isEmpty }

  /// The number of changes that the runs describe; nil without runs.
  var changeCount: Int64? {
    // More than any file can have is as wrong as any other wrong number.
    runs.isEmpty ? nil : runs.reduce(Int64(0)) { min($0 &+ $1.count, 1 << 60) }
  }
}

extension RowKeys {
  /// The object in the document; lists that are empty are left out.
  var json: JSONValue {
    var object = JSONObject()
    object.append("replicas", .array(replicas.map { .string($0.description) }))
    if !runs.isEmpty {
      object.append(
        "runs",
        .array(
          runs.map { run -> JSONValue in
            var object = JSONObject()
            object.append("count", .integer(run.count))
            if !run.names.isEmpty { object.append("names", .array(run.names.map(Self.json))) }
            return .object(object)
          }))
    }
    if !references.isEmpty {
      object.append(
        "references",
        .array(
          references.map {
            [
              "table": .string($0.table.text), "key": Self.json($0.key), "replica": .number($0.replica),
              "name": Self.json($0.name),
            ]
          }))
    }
    if !links.isEmpty {
      object.append(
        "links",
        .array(
          links.map {
            [
              "table": .string($0.table.text), "columns": .strings($0.columns),
              "parent": .string($0.parent.text), "parentColumns": .strings($0.parentColumns),
            ]
          }))
    }
    return .object(object)
  }

  /// Reads the object.
  init(reading fields: inout MemberFields) throws(DiffFileError) {
    let replicas = try fields.list("replicas", limit: DiffFileLimits.tables) { (value, path) throws(DiffFileError) in
      guard case .string(let text) = value, let replica = ReplicaID(hex: text) else {
        throw JSONMember.annotations.invalid(path, "is no replica")
      }
      return replica
    }
    guard Set(replicas).count == replicas.count else { throw fields.invalid("replicas", "holds a replica twice") }
    self.init(replicas: replicas)
    let last = Int64(replicas.count) - 1
    runs = try fields.objectsIfNamed("runs", limit: Int.max) { (fields: inout MemberFields) throws(DiffFileError) in
      try Run(reading: &fields, lastReplica: last)
    }
    references = try fields.objectsIfNamed("references", limit: Int.max) {
      (fields: inout MemberFields) throws(DiffFileError) in
      guard last >= 0 else { throw JSONMember.annotations.invalid(fields.path, "names a replica that is not listed") }
      return Reference(
        table: TableName(try fields.string("table")), key: try fields.key("key"),
        replica: Int(try fields.integer("replica", in: 0...last)), name: try fields.key("name"))
    }
    links = try fields.objectsIfNamed("links", limit: DiffFileLimits.columns) {
      (fields: inout MemberFields) throws(DiffFileError) in
      Link(
        table: TableName(try fields.string("table")),
        columns: try fields.strings("columns", limit: DiffFileLimits.columns),
        parent: TableName(try fields.string("parent")),
        parentColumns: try fields.strings("parentColumns", limit: DiffFileLimits.columns))
    }
  }

  private static func json(_ names: Names) -> JSONValue {
    var object = JSONObject()
    object.append("replica", .number(names.replica))
    if !names.keys.isEmpty { object.append("keys", .array(names.keys.map { json($0) })) }
    if !names.versions.isEmpty {
      object.append("versions", .array(names.versions.map { .string(digits(of: $0)) }))
    }
    if let copies = names.copies {
      object.append("inserted", .integer(copies.inserted))
      object.append("deleted", .integer(copies.deleted))
    }
    return .object(object)
  }

  /// A hash as 16 hexadecimal digits.
  private static func digits(of version: UInt64) -> String {
    HexText.lowercase(withUnsafeBytes(of: version.bigEndian) { Array($0) })
  }

  fileprivate static func version(_ digits: String) -> UInt64? {
    guard let bytes = HexText.bytes(digits), bytes.count == 8 else { return nil }
    return bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// A key in JSON: as text if it is larger than a number that every JSON reader represents exactly.
  fileprivate static func json(_ key: Int64) -> JSONValue {
    key.magnitude <= UInt64(DiffFileLimits.number) ? .integer(key) : .string("\(key)")
  }

  fileprivate static func key(_ value: JSONValue) -> Int64? {
    switch value {
    case .integer(let number) where number.magnitude <= UInt64(DiffFileLimits.number): number
    case .string(let text): Int64(text).flatMap { "\($0)" == text && json($0) == value ? $0 : nil }
    default: nil
    }
  }
}

extension RowKeys.Run {
  fileprivate init(reading fields: inout MemberFields, lastReplica: Int64) throws(DiffFileError) {
    self.init(count: try fields.integer("count", in: 1...DiffFileLimits.number))
    let count = count
    names = try fields.objectsIfNamed("names", limit: Int(lastReplica + 1)) {
      (fields: inout MemberFields) throws(DiffFileError) in
      try RowKeys.Names(reading: &fields, lastReplica: lastReplica, count: count)
    }
    guard Set(names.map(\.replica)).count == names.count else {
      throw fields.invalid("names", "has a replica twice")
    }
  }
}

extension RowKeys.Names {
  fileprivate init(reading fields: inout MemberFields, lastReplica: Int64, count: Int64) throws(DiffFileError) {
    self.init(replica: Int(try fields.integer("replica", in: 0...lastReplica)))
    if fields.remaining["keys"] != nil {
      keys = try fields.list("keys", limit: Int.max) { (value, path) throws(DiffFileError) in
        guard let key = RowKeys.key(value) else { throw JSONMember.annotations.invalid(path, "is no integer key") }
        return key
      }
      guard Int64(keys.count) == count else { throw fields.invalid("keys", "does not have one for each change") }
    }
    if fields.remaining["versions"] != nil {
      versions = try fields.list("versions", limit: Int.max) { (value, path) throws(DiffFileError) in
        guard case .string(let text) = value, let version = RowKeys.version(text) else {
          throw JSONMember.annotations.invalid(path, "is no hash of 16 hexadecimal digits")
        }
        return version
      }
      guard Int64(versions.count) == count else {
        throw fields.invalid("versions", "does not have one for each change")
      }
    }
    if fields.remaining["inserted"] != nil {
      let inserted = try fields.integer("inserted", in: 0...DiffFileLimits.copies)
      copies = RowKeys.Copies(inserted: inserted, deleted: try fields.integer("deleted", in: 0...inserted))
    }
  }
}

extension MemberFields {
  fileprivate mutating func key(_ name: String) throws(DiffFileError) -> Int64 {
    guard let key = RowKeys.key(try required(name)) else { throw invalid(name, "is no integer key") }
    return key
  }
}
