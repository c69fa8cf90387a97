import BuckiaBytes

/// The names of a diff file's members, and their roles.
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

  /// The role of a member, in the order of the archive.
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

  /// True if a file of this name can be unpacked anywhere without leaving its folder or surprising a person.
  ///
  /// It compares bytes, like a file system. In Swift a slash with a combining mark is one character that is not equal
  /// to a slash: `files/../` with a mark after it would have no part that is `..`.
  static func isSafePath(_ name: String) -> Bool {
    let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return parts.count >= 2 && name.utf8.count <= byteLimit
      && parts.allSatisfy { !$0.isEmpty && !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8) }
      && !name.utf8.contains(UInt8(ascii: "\\")) && !name.utf8.contains(UInt8(ascii: ":"))
      && name.unicodeScalars.allSatisfy(isSafe)
  }

  /// True if a character is allowed in a file's name: stricter than the rule for printing.
  private static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
    default: true
    }
  }
}
