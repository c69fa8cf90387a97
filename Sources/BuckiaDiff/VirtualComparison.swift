import SQLiteSchemas

/// What becomes of a virtual table that is in both databases: nothing can be added to one that is there, nor taken away.
enum VirtualComparison {
  /// Whether the rows of a table travel, and what is to be said of the rest.
  static func fate(
    of newer: TableDefinition, against older: TableDefinition, isRaw: Bool
  ) -> (travels: Bool, remark: String?) {
    guard let module = newer.module, let olderModule = older.module else {
      return (false, "it is a virtual table in one of the two databases, and an ordinary one in the other")
    }
    guard module.name == olderModule.name else {
      return (false, "its module is \(olderModule.name) in one of the two databases, and \(module.name) in the other")
    }
    let names = newer.columns.map { Array(ASCIIName.folded($0.name).utf8) }
    let olderNames = older.columns.map { Array(ASCIIName.folded($0.name).utf8) }
    guard isRaw ? names == olderNames : Set(names) == Set(olderNames), newer.hasSameKey(as: older) else {
      return (false, "its columns differ between the two databases, and those of a virtual table cannot be altered")
    }
    guard module != olderModule else { return (true, nil) }
    return (true, "its definition has changed, which does not travel; its rows do")
  }
}
