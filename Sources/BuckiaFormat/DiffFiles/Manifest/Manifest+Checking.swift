import BuckiaBytes
import SQLiteSchemas

extension Manifest {
  /// Checks what the fields say about one another; reader and writer both call it.
  ///
  /// - Parameter splitBytes: The size at which the changeset is split into parts.
  func check(splitBytes: Int64) throws(DiffFileError) {
    let document = JSONMember.manifest
    guard Set(critical.map { Array($0.utf8) }).count == critical.count else {
      throw document.invalid("critical", "names a field twice")
    }
    try checkAdditional(document)
    if let chain {
      if let follows = chain.follows {
        guard chain.sequence > 1 else {
          throw document.invalid("chain.follows", "stands in the first diff of a stream")
        }
        guard follows.id < id else {
          throw document.invalid("chain.follows.id", "is not smaller than the diff's own id")
        }
      } else if kind == .delta, chain.sequence > 1 {
        throw document.invalid("chain.follows", "is missing, though it is no snapshot and not the first diff")
      }
      guard chain.replaces == nil || kind == .snapshot else {
        throw document.invalid("chain.replaces", "stands in a diff that is no snapshot")
      }
    }
    for (place, rename) in renames.enumerated() {
      if let refusal = rename.refusal { throw document.invalid("renames[\(place)]", "is no rename: \(refusal)") }
    }
    guard Set(renames).count == renames.count else { throw document.invalid("renames", "names a column twice") }
    try checkTables(document)
    try checkStates(document)
    try checkRows(document)
    try checkMembers(splitBytes: splitBytes)
    if let schemaMember = members.first(where: { $0.name == MemberName.schema }), schemaMember.sha256 != schema {
      throw DiffFileError(
        .contradiction, "\"schema\" is not the digest of the member schema.json", member: document.name)
    }
  }

  private func checkTables(_ document: JSONMember) throws(DiffFileError) {
    var names: Set<TableName> = []
    for table in tables {
      guard table.name.utf8.count <= DiffFileLimits.nameBytes else {
        throw document.invalid("tables", "holds a name of more than \(DiffFileLimits.nameBytes) bytes")
      }
      let name = TableName(table.name)
      if let refusal = name.refusal {
        throw DiffFileError(
          .badName, "the table \(EscapedText.quoted(table.name)) cannot be part of a diff: \(refusal)",
          member: document.name, table: table.name)
      }
      guard names.insert(name).inserted else {
        throw document.invalid("tables", "lists \(EscapedText.quoted(table.name)) twice", table: table.name)
      }
      guard table.withdrawn <= table.deleted else {
        throw document.invalid(
          "tables", "counts more withdrawals than deletes in \(EscapedText.quoted(table.name))", table: table.name)
      }
    }
    guard kind != .ack || tables.isEmpty else {
      throw document.invalid("tables", "is not empty, though the diff is only an acknowledgement")
    }
  }

  /// A field that is known must not come back as an unknown one, or the document would have it twice.
  private func checkAdditional(_ document: JSONMember) throws(DiffFileError) {
    if additional.members.isEmpty { return }
    var names = Set(Self.knownFields.map { Array($0.utf8) })
    for member in additional.members {
      guard names.insert(Array(member.name.utf8)).inserted else {
        throw document.invalid(member.name, "appears twice")
      }
    }
  }
}
