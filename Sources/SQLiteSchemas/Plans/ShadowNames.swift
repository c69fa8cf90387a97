/// The names under which the modules of some virtual tables keep their rows.
struct ShadowNames {
  private var owners: [TableName: TableName] = [:]

  /// - Parameter entries: A schema; only its virtual tables matter.
  init(of entries: [SchemaEntry]) {
    for entry in entries {
      guard case .virtual(let module, _) = entry.kind else { continue }
      for suffix in VirtualModule.shadowSuffixes(ofModule: module) {
        let name = TableName(entry.name.text + suffix)
        if owners[name] == nil { owners[name] = entry.name }
      }
    }
  }

  /// The virtual table whose module has that name for a table of its own; nil when none has.
  func owner(of name: TableName) -> TableName? { owners[name] }
}
