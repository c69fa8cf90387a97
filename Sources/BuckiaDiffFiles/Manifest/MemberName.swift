/// The names of a diff file's members, and the order they stand in.
enum MemberName {
  static let manifest = "manifest.json"
  static let signature = "manifest.sig"
  static let schema = "schema.json"
  static let changeset = "changeset"
  static let annotations = "annotations"
  static let filesPrefix = "files/"
  /// What fits the name field of a tar header.
  static let byteLimit = 100

  /// The name of a part of the changeset: `changeset`, `changeset.1`, `changeset.2`, …
  static func changesetPart(_ index: Int) -> String { index == 0 ? changeset : "\(changeset).\(index)" }

  /// What a member is for.
  enum Role: Int {
    case schema, changeset, annotations, file
  }

  static func role(of name: String) -> Role? {
    switch name {
    case schema: .schema
    case annotations: .annotations
    case changeset: .changeset
    case _ where name.utf8.starts(with: "\(changeset).".utf8): .changeset
    case _ where name.utf8.starts(with: filesPrefix.utf8): .file
    default: nil
    }
  }

  /// Checks that the members are the ones that may be there, in the one order that they may have.
  static func checkOrder(of members: [Manifest.Member], splitBytes: Int64) throws(DiffFileError) {
    let document = DocumentKind.manifest
    var lastRole = -1
    var parts: [Manifest.Member] = []
    var files: [Manifest.Member] = []
    for member in members {
      let shown = ShownText.quoted(member.name)
      guard let role = role(of: member.name) else {
        throw document.fault("members", "holds \(shown), which is unknown")
      }
      let repeats = role == .changeset || role == .file
      guard role.rawValue > lastRole || (repeats && role.rawValue == lastRole) else {
        throw document.fault("members", "holds \(shown) twice or too late")
      }
      lastRole = role.rawValue
      switch role {
      case .schema: try checkSize(member, limit: DiffFileLimits.schemaBytes)
      case .annotations: try checkSize(member, limit: DiffFileLimits.annotationsBytes)
      case .changeset: parts.append(member)
      case .file: files.append(member)
      }
    }
    try checkParts(parts, splitBytes: splitBytes)
    try checkFiles(files)
  }

  private static func checkSize(_ member: Manifest.Member, limit: Int) throws(DiffFileError) {
    guard member.size <= Int64(limit) else {
      throw DiffFileError(
        .tooLarge, "it has \(member.size) bytes; the limit is \(limit)", member: member.name)
    }
  }

  /// `changeset` is always there; it is split only when it is too long, and then every part but the last is full.
  private static func checkParts(_ parts: [Manifest.Member], splitBytes: Int64) throws(DiffFileError) {
    let document = DocumentKind.manifest
    guard !parts.isEmpty else { throw document.fault("members", "holds no changeset") }
    for (index, part) in parts.enumerated() {
      guard part.name == changesetPart(index) else {
        throw document.fault(
          "members", "holds \(ShownText.quoted(part.name)) where \"\(changesetPart(index))\" belongs")
      }
      let isLast = index == parts.count - 1
      guard isLast ? part.size <= splitBytes && (index == 0 || part.size > 0) : part.size == splitBytes else {
        throw document.fault("members", "holds parts of the changeset that are not full")
      }
    }
  }

  /// Attachments stand in ascending order of their names' bytes, which also keeps a name from coming twice.
  private static func checkFiles(_ files: [Manifest.Member]) throws(DiffFileError) {
    let document = DocumentKind.manifest
    var folders: Set<[UInt8]> = []
    var last: [UInt8] = []
    for file in files {
      try checkFileName(file.name)
      let bytes = Array(file.name.utf8)
      guard last.lexicographicallyPrecedes(bytes) else {
        throw document.fault("members", "holds \(ShownText.quoted(file.name)) twice or out of order")
      }
      last = bytes
      for place in bytes.indices where bytes[place] == slash { folders.insert(Array(bytes[..<place])) }
    }
    if let file = files.first(where: { folders.contains(Array($0.name.utf8)) }) {
      throw document.fault("members", "holds \(ShownText.quoted(file.name)) as a file and as a folder")
    }
  }

  private static let slash = UInt8(ascii: "/")

  /// A name that can be unpacked anywhere without leaving its folder or surprising a person.
  ///
  /// Bytes are looked at, as a file system does. To Swift a slash and a combining mark behind it are one character that is
  /// no slash: `files/../` with a mark after it would have no part that is `..`.
  static func checkFileName(_ name: String) throws(DiffFileError) {
    let parts = name.utf8.split(separator: slash, omittingEmptySubsequences: false)
    let isSafe =
      parts.count >= 2 && name.utf8.count <= byteLimit
      && parts.allSatisfy { !$0.isEmpty && !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8) }
      && !name.utf8.contains(UInt8(ascii: "\\")) && !name.utf8.contains(UInt8(ascii: ":"))
      && name.unicodeScalars.allSatisfy(ShownText.isSafe)
    guard isSafe else {
      throw DocumentKind.manifest.fault(
        "members",
        "holds the name \(ShownText.quoted(name)): empty parts, \"..\", backslashes, colons, control characters and"
          + " more than \(byteLimit) bytes are refused")
    }
  }
}
