import SQLiteSchemas

/// A virtual table that is in both databases: nothing can be added to one that exists, nor taken away.
struct VirtualTablePair {
  /// Whether its rows travel.
  let isComparable: Bool
  /// What is to be said of it.
  let remark: SkipReason?

  /// - Parameter isRaw: Whether the changes travel without definitions, so that columns are found by their order alone.
  init(_ newer: TableDefinition, _ older: TableDefinition, isRaw: Bool) {
    remark = Self.remark(newer, older, isRaw: isRaw)
    isComparable = remark == nil || remark?.code == .moduleArgumentsDiffer
  }

  private static func remark(_ newer: TableDefinition, _ older: TableDefinition, isRaw: Bool) -> SkipReason? {
    guard let module = newer.module, let olderModule = older.module else { return SkipReason(.virtualAndOrdinary) }
    guard module.name == olderModule.name else { return SkipReason(.moduleDiffers, olderModule.name, module.name) }
    let names = newer.columns.map { Array(ASCIIName.folded($0.name).utf8) }
    let olderNames = older.columns.map { Array(ASCIIName.folded($0.name).utf8) }
    guard isRaw ? names == olderNames : Set(names) == Set(olderNames), newer.hasSameKey(as: older) else {
      return SkipReason(.virtualColumnsDiffer)
    }
    return module == olderModule ? nil : SkipReason(.moduleArgumentsDiffer)
  }
}
