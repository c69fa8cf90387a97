import BuckiaBytes
import SQLiteSchemas

extension Manifest {
  /// The manifest as JSON, fields in the order of the specification.
  ///
  /// Absent fields are left out, except `chain.follows` and `chain.replaces`, which are null.
  package var json: JSONValue {
    var object = JSONObject()
    object.append("format", .integer(Self.format))
    object.append("critical", .strings(critical))
    object.append("kind", .string(kind.rawValue))
    object.append("id", .string(id.description))
    if let dataset { object.append("dataset", .string(dataset.description)) }
    if let sender { object.append("sender", sender.json) }
    if let audience { object.append("audience", audience.json) }
    if let chain { object.append("chain", chain.json) }
    if !acknowledgements.isEmpty { object.append("acks", .array(acknowledgements.map(\.json))) }
    if let schema { object.append("schema", .string(schema.description)) }
    if !renames.isEmpty { object.append("renames", .array(renames.map(\.json))) }
    if !ownKeys.isEmpty { object.append("ownKeys", .array(ownKeys.map { .string($0.text) })) }
    if let sharedWith { object.append("sharedWith", sharedWith.json) }
    object.append("tables", .array(tables.map(\.json)))
    if !states.isEmpty { object.append("state", .array(states.map(\.json))) }
    if !resent.isEmpty { object.append("resent", .array(resent.map(\.json))) }
    if !requests.isEmpty { object.append("requests", .array(requests.map(\.json))) }
    object.append("members", .array(members.map(\.json)))
    object.members += additional.members
    return .object(object)
  }
}

extension ColumnRename {
  fileprivate var json: JSONValue {
    ["table": .string(table.text), "from": .string(oldName), "to": .string(newName)]
  }
}

extension Manifest.Sender {
  var json: JSONValue {
    var object = JSONObject()
    if let identity { object.append("identity", .string(identity.description)) }
    if let replica { object.append("replica", .string(replica.description)) }
    if let incarnation { object.append("incarnation", .string(incarnation.description)) }
    object.members += additional.members
    return .object(object)
  }
}

extension Audience {
  var json: JSONValue {
    switch self {
    case .recipients(let salt, let hashes):
      ["salt": .string(salt.description), "recipients": .array(hashes.map { .string($0.description) })]
    case .broadcast(let stream): ["broadcast": .string(stream.description)]
    }
  }
}

extension Manifest.Chain {
  var json: JSONValue {
    var object = JSONObject()
    object.append("stream", .string(stream.description))
    object.append("sequence", .integer(sequence))
    let predecessor: JSONValue =
      if let follows {
        ["id": .string(follows.id.description), "manifestSHA256": .string(follows.manifestSHA256.description)]
      } else {
        .null
      }
    object.append("follows", predecessor)
    object.append("replaces", .text(replaces?.description))
    object.members += additional.members
    return .object(object)
  }
}

extension Manifest.Acknowledgement {
  var json: JSONValue {
    var object = JSONObject()
    object.append("stream", .string(stream.description))
    object.append("incarnation", .string(incarnation.description))
    object.append("through", .integer(through))
    let exceptions = except.map { exception -> JSONValue in
      ["id": .string(exception.id.description), "state": .string(exception.state.rawValue)]
    }
    object.append("except", .array(exceptions))
    object.members += additional.members
    return .object(object)
  }
}

extension Manifest.Table {
  var json: JSONValue {
    var object = JSONObject()
    object.append("name", .string(name))
    object.append("columns", .number(columns))
    object.append("key", .string(key.rawValue))
    object.append("order", .string(order.rawValue))
    object.append("inserted", .integer(inserted))
    object.append("updated", .integer(updated))
    object.append("deleted", .integer(deleted))
    object.append("withdrawn", .integer(withdrawn))
    object.members += additional.members
    return .object(object)
  }
}

extension Manifest.Member {
  var json: JSONValue {
    var object = JSONObject()
    object.append("name", .string(name))
    object.append("size", .integer(size))
    object.append("sha256", .string(sha256.description))
    object.members += additional.members
    return .object(object)
  }
}

extension Manifest {
  /// The names of fields this version understands; `critical` may name no others.
  static let knownFields: Set<String> = [
    "format", "critical", "kind", "id", "dataset", "sender", "audience", "chain", "acks", "schema",
    "renames", "ownKeys", "sharedWith", "tables", "state", "resent", "requests", "members",
  ]

  /// Reads and checks a manifest.
  ///
  /// - Parameter bytes: `manifest.json`, exactly.
  /// - Throws: `DiffFileError` with code `badJSON`, `unsupportedFormat`, `badManifest`, `badName`, or `tooLarge`.
  package init(parsing bytes: [UInt8]) throws(DiffFileError) {
    try self.init(parsing: bytes, splitBytes: DiffFileLimits.memberBytes)
  }

  /// Reads and checks a manifest whose changeset is split at another size than the format's.
  init(parsing bytes: [UInt8], splitBytes: Int64) throws(DiffFileError) {
    let document = JSONMember.manifest
    guard bytes.count <= DiffFileLimits.manifestBytes else {
      throw DiffFileError(
        .tooLarge, "the manifest has \(bytes.count) bytes; the limit is \(DiffFileLimits.manifestBytes)",
        member: document.name)
    }
    var fields = try MemberFields(document.parse(bytes), at: "", of: document)
    // The version comes first: a newer format may have other rules for everything else.
    let format = try fields.integer("format", in: Int64.min...Int64.max)
    guard format == Self.format else {
      throw DiffFileError(
        .unsupportedFormat, "it has format \(format), made by a newer version; this one reads format \(Self.format)",
        member: document.name)
    }
    let critical = try fields.strings("critical", limit: 100)
    if let unknown = critical.first(where: { !Self.knownFields.contains($0) }) {
      throw DiffFileError(
        .unsupportedFormat, "it cannot be used without understanding \(EscapedText.quoted(unknown))",
        member: document.name)
    }
    let kind = try fields.choice("kind", of: Kind.self)
    let id = try fields.id("id")
    let dataset = try fields.optionalBytes("dataset", as: DatasetID.self)
    let sender = try fields.object("sender", Sender.init(reading:))
    let audience = try fields.object("audience", Audience.init(reading:))
    let chain = try fields.object("chain", Chain.init(reading:))
    let acknowledgements = try fields.objectsIfNamed("acks", limit: 10_000, Acknowledgement.init(reading:))
    let schema = try fields.optionalBytes("schema", as: ContentDigest.self)
    let renames = try fields.objectsIfNamed("renames", limit: DiffFileLimits.columns, ColumnRename.init(reading:))
    var ownKeys: [TableName] = []
    if fields.remaining["ownKeys"] != nil {
      ownKeys = try fields.strings("ownKeys", limit: DiffFileLimits.tables).map { TableName($0) }
      guard Set(ownKeys).count == ownKeys.count else { throw fields.invalid("ownKeys", "names a table twice") }
    }
    let sharedWith = try fields.object("sharedWith", Audience.init(reading:))
    let tables = try fields.objects("tables", limit: DiffFileLimits.tables, Table.init(reading:))
    let states = try fields.objectsIfNamed("state", limit: DiffFileLimits.tables, State.init(reading:))
    let resent = try fields.objectsIfNamed("resent", limit: DiffFileLimits.tables) {
      (fields: inout MemberFields) throws(DiffFileError) in try Rows(reading: &fields, hasStream: false)
    }
    let requests = try fields.objectsIfNamed("requests", limit: DiffFileLimits.tables) {
      (fields: inout MemberFields) throws(DiffFileError) in try Rows(reading: &fields, hasStream: true)
    }
    let members = try fields.objects("members", limit: 100_000, Member.init(reading:))
    self.init(
      id: id, kind: kind, critical: critical, dataset: dataset, sender: sender, audience: audience, chain: chain,
      acknowledgements: acknowledgements, schema: schema, renames: renames, ownKeys: ownKeys,
      sharedWith: sharedWith, tables: tables, states: states,
      resent: resent, requests: requests,
      members: members, additional: fields.remaining)
    try check(splitBytes: splitBytes)
  }
}

extension Manifest.Sender {
  fileprivate init(reading fields: inout MemberFields) throws(DiffFileError) {
    self.init(
      identity: try fields.optionalBytes("identity", as: SigningKey.self),
      replica: try fields.optionalBytes("replica", as: ReplicaID.self),
      incarnation: try fields.optionalBytes("incarnation", as: IncarnationID.self))
    additional = fields.takeRemaining()
  }
}

extension Audience {
  fileprivate init(reading fields: inout MemberFields) throws(DiffFileError) {
    if let stream = try fields.optionalBytes("broadcast", as: StreamID.self) {
      self = .broadcast(stream)
      return
    }
    let salt = try fields.bytes("salt", as: Salt.self)
    let hashes = try fields.list("recipients", limit: DiffFileLimits.recipients) {
      (value, place) throws(DiffFileError) in
      guard case .string(let text) = value, let hash = ContentDigest(hex: text) else {
        throw JSONMember.manifest.invalid(place, "is no hash")
      }
      return hash
    }
    guard !hashes.isEmpty, Set(hashes).count == hashes.count else {
      throw fields.invalid("recipients", "is empty or names someone twice")
    }
    self = .recipients(salt: salt, hashes: hashes)
  }
}

extension Manifest.Chain {
  fileprivate init(reading fields: inout MemberFields) throws(DiffFileError) {
    self.init(
      stream: try fields.bytes("stream", as: StreamID.self),
      sequence: try fields.integer("sequence", in: 1...DiffFileLimits.number))
    follows = try fields.object("follows") { (fields: inout MemberFields) throws(DiffFileError) in
      Predecessor(
        id: try fields.id("id"), manifestSHA256: try fields.bytes("manifestSHA256", as: ContentDigest.self))
    }
    replaces = try fields.optionalBytes("replaces", as: StreamID.self)
    additional = fields.takeRemaining()
  }
}

extension Manifest.Acknowledgement {
  fileprivate init(reading fields: inout MemberFields) throws(DiffFileError) {
    self.init(
      stream: try fields.bytes("stream", as: StreamID.self),
      incarnation: try fields.bytes("incarnation", as: IncarnationID.self),
      through: try fields.integer("through"))
    except = try fields.objectsIfNamed("except", limit: 10_000) { (fields: inout MemberFields) throws(DiffFileError) in
      Exception(id: try fields.id("id"), state: try fields.choice("state", of: State.self))
    }
    additional = fields.takeRemaining()
  }
}

extension Manifest.Table {
  fileprivate init(reading fields: inout MemberFields) throws(DiffFileError) {
    self.init(
      name: try fields.string("name"),
      // One more than a table can have: the leading `_rowid_`.
      columns: Int(try fields.integer("columns", in: 1...Int64(DiffFileLimits.columns + 1))),
      key: try fields.choice("key", of: Key.self),
      order: try fields.choice("order", of: Order.self),
      inserted: try fields.integer("inserted"),
      updated: try fields.integer("updated"),
      deleted: try fields.integer("deleted"),
      withdrawn: try fields.integer("withdrawn"))
    additional = fields.takeRemaining()
  }
}

extension ColumnRename {
  fileprivate init(reading fields: inout MemberFields) throws(DiffFileError) {
    self.init(
      table: TableName(try fields.string("table")), from: try fields.string("from"), to: try fields.string("to"))
  }
}

extension Manifest.Member {
  fileprivate init(reading fields: inout MemberFields) throws(DiffFileError) {
    self.init(
      name: try fields.string("name"),
      size: try fields.integer("size", in: 0...DiffFileLimits.memberBytes),
      sha256: try fields.bytes("sha256", as: ContentDigest.self))
    additional = fields.takeRemaining()
  }
}
