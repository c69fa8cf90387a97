import BuckiaBytes
import SQLiteSchemas

extension Manifest {
  /// Checks that the fields agree; reader and writer both call it.
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

  /// A known field must not be among the unknown ones, or the document would have it twice.
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

extension Manifest {
  /// The bytes of the definitions and annotations as text, and an estimate of the manifest's own.
  package var documentBytes: Int {
    members.reduce(64 * members.count) { sum, member in
      let role = MemberName.role(of: member.name)
      return role == .schema || role == .annotations ? sum + Int(clamping: member.size) : sum
    }
  }

  /// True if the file has annotations.
  package var hasAnnotations: Bool { members.contains { MemberName.role(of: $0.name) == .annotations } }

  /// Checks that the members are the ones that may be there, in the one order that they may have.
  func checkMembers(splitBytes: Int64) throws(DiffFileError) {
    var lastRole = -1
    var parts: [Member] = []
    var files: [Member] = []
    for member in members {
      guard let role = MemberName.role(of: member.name) else {
        throw JSONMember.manifest.invalid("members", "holds \(EscapedText.quoted(member.name)), which is unknown")
      }
      let repeats = role == .changeset || role == .file
      guard role.rawValue > lastRole || (repeats && role.rawValue == lastRole) else {
        throw JSONMember.manifest.invalid("members", "holds \(EscapedText.quoted(member.name)) twice or too late")
      }
      lastRole = role.rawValue
      switch role {
      case .schema: try Self.checkSize(member, limit: DiffFileLimits.schemaBytes)
      case .annotations: try Self.checkSize(member, limit: DiffFileLimits.annotationsBytes)
      case .changeset: parts.append(member)
      case .file: files.append(member)
      }
    }
    try Self.checkParts(parts, splitBytes: splitBytes)
    try Self.checkFiles(files)
  }

  private static func checkSize(_ member: Member, limit: Int) throws(DiffFileError) {
    guard member.size <= Int64(limit) else {
      throw DiffFileError(
        .tooLarge, "it has \(member.size) bytes; the limit is \(limit)", member: member.name)
    }
  }

  /// `changeset` is always there; it is split only when it is too long, and then every part but the last is full.
  private static func checkParts(_ parts: [Member], splitBytes: Int64) throws(DiffFileError) {
    guard !parts.isEmpty else { throw JSONMember.manifest.invalid("members", "holds no changeset") }
    for (index, part) in parts.enumerated() {
      let expected = MemberName.changesetPart(index)
      guard part.name == expected else {
        throw JSONMember.manifest.invalid(
          "members", "holds \(EscapedText.quoted(part.name)) where \"\(expected)\" belongs")
      }
      let isLast = index == parts.count - 1
      guard isLast ? part.size <= splitBytes && (index == 0 || part.size > 0) : part.size == splitBytes else {
        throw JSONMember.manifest.invalid("members", "holds parts of the changeset that are not full")
      }
    }
  }

  /// Attachments are in ascending order of their names' bytes, which also excludes duplicates.
  private static func checkFiles(_ files: [Member]) throws(DiffFileError) {
    var folders: Set<[UInt8]> = []
    var last: [UInt8] = []
    for file in files {
      guard MemberName.isSafePath(file.name) else {
        throw JSONMember.manifest.invalid(
          "members",
          "holds the name \(EscapedText.quoted(file.name)): empty parts, \"..\", backslashes, colons, control characters"
            + " and more than \(MemberName.byteLimit) bytes are refused")
      }
      let bytes = Array(file.name.utf8)
      guard last.lexicographicallyPrecedes(bytes) else {
        throw JSONMember.manifest.invalid("members", "holds \(EscapedText.quoted(file.name)) twice or out of order")
      }
      last = bytes
      for place in bytes.indices where bytes[place] == UInt8(ascii: "/") { folders.insert(Array(bytes[..<place])) }
    }
    if let file = files.first(where: { folders.contains(Array($0.name.utf8)) }) {
      throw JSONMember.manifest.invalid(
        "members", "holds \(EscapedText.quoted(file.name)) as a file and as a folder")
    }
  }
}
