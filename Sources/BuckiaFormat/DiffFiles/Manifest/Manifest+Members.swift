import BuckiaBytes
import SQLiteSchemas

extension Manifest {
  /// How many bytes the definitions and annotations have as text, and about how many the manifest itself has.
  package var documentBytes: Int {
    members.reduce(64 * members.count) { sum, member in
      let role = MemberName.role(of: member.name)
      return role == .schema || role == .annotations ? sum + Int(clamping: member.size) : sum
    }
  }

  /// Whether the file says anything of its changes beside them.
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

  /// Attachments stand in ascending order of their names' bytes, which also keeps a name from coming twice.
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
