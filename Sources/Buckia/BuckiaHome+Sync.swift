import BuckiaFormat

extension BuckiaHome {
  /// The file that holds what is known of the storages to which a database goes.
  ///
  /// - Parameters:
  ///   - database: The database's path.
  ///   - userID: The person's folder in the storage.
  /// - Throws: `BuckiaError` when the folder for such files cannot be made.
  package func syncIndexPath(of database: String, userID: String) throws -> String {
    let sync = try syncFolder()
    // The same database by another way is the same.
    let folder = FileSystem.folder(of: database)
    let place = "\(FileSystem.resolved(folder) ?? folder)/\(FileSystem.name(of: database))\0\(userID)"
    return "\(sync)/\("\(ContentDigest(of: Array(place.utf8)))".prefix(32)).sqlite"
  }

  /// The file in which `buckia sync` keeps the tokens of sign-ins.
  ///
  /// - Throws: `BuckiaError` when the folder for such files cannot be made.
  package func tokensPath() throws -> String { try "\(syncFolder())/tokens.json" }

  private func syncFolder() throws -> String {
    makeFolders()
    try FileSystem.makeFolders("\(path)/sync", permissions: 0o700)
    return "\(path)/sync"
  }
}
