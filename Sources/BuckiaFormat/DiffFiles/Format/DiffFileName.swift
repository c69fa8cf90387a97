import BuckiaBytes

/// The names of files that travel: an id and what kind of file it is.
package enum DiffFileName {
  /// `.bdiff`
  package static let diffSuffix = ".bdiff"
  /// `.changeset`
  package static let changesetSuffix = ".changeset"

  /// `.bdiff.age`
  package static let encryptedSuffix = ".bdiff.age"
  /// `.accept`: the answer to an invitation
  package static let acceptanceSuffix = ".accept"
  /// What the names of files that travel end in.
  package static let suffixes = [diffSuffix, encryptedSuffix, changesetSuffix, acceptanceSuffix]

  /// The name of the diff file with that id.
  package static func diff(_ id: KSUID) -> String { "\(id)\(diffSuffix)" }

  /// The name of the encrypted diff file with that id.
  package static func encrypted(_ id: KSUID) -> String { "\(id)\(encryptedSuffix)" }

  /// The name of the raw changeset with that id.
  package static func changeset(_ id: KSUID) -> String { "\(id)\(changesetSuffix)" }

  /// The name of the answer to an invitation with that id.
  package static func acceptance(_ id: KSUID) -> String { "\(id)\(acceptanceSuffix)" }

  /// The id of a file called `<KSUID>.accept`, or nil. `path` may have folders in front.
  package static func acceptanceID(_ path: String) -> KSUID? { id(path, suffix: acceptanceSuffix) }

  /// The id of a file called `<KSUID>.bdiff`, or nil. `path` may have folders in front.
  package static func diffID(_ path: String) -> KSUID? { id(path, suffix: diffSuffix) }

  /// The id of a file called `<KSUID>.bdiff.age`, or nil. `path` may have folders in front.
  package static func encryptedID(_ path: String) -> KSUID? { id(path, suffix: encryptedSuffix) }

  /// The id of a file called `<KSUID>.changeset`, or nil. `path` may have folders in front.
  package static func changesetID(_ path: String) -> KSUID? { id(path, suffix: changesetSuffix) }

  private static func id(_ path: String, suffix: String) -> KSUID? {
    let name =
      path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8[path.utf8.index(after: $0)...] }
      ?? path.utf8[...]
    guard name.count == KSUID.textLength + suffix.utf8.count,
      name.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    else { return nil }
    return KSUID(String(decoding: name.prefix(KSUID.textLength), as: UTF8.self))
  }
}
