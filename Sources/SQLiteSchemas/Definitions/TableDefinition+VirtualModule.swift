import BuckiaBytes

extension TableDefinition {
  /// How the table's module contradicts the rest of its definition; nil when it does not. Always nil for an ordinary table.
  package var moduleContradiction: String? {
    guard let module else { return nil }
    let isPlain =
      !isWithoutRowID && !isStrict && !isAutoIncrement && generated.isEmpty && unique.isEmpty && foreignKeys.isEmpty
      && columns.allSatisfy { $0.defaultValue == nil && $0.collation.utf8.elementsEqual("BINARY".utf8) }
    guard isPlain else { return "a virtual table has no constraints, defaults or options of an ordinary one" }
    switch module {
    case .spatial(let index):
      guard SpatialIndex.coordinateCounts.contains(index.coordinates) else {
        return "an R-tree has two to ten coordinates, in pairs"
      }
      let auxiliary = columns.count - 1 - index.coordinates
      guard (0...SpatialIndex.auxiliaryLimit).contains(auxiliary) else {
        return "an R-tree has a key, its coordinates, and at most \(SpatialIndex.auxiliaryLimit) other columns"
      }
      guard primaryKey == [0], columns[0].declaredType.utf8.elementsEqual("INTEGER".utf8) else {
        return "the key of an R-tree is its first column, an INTEGER"
      }
      let type = index.kind == .real ? "REAL" : "INT"
      guard columns[1...index.coordinates].allSatisfy({ $0.declaredType.utf8.elementsEqual(type.utf8) }) else {
        return "the coordinates of the module \(module.name) are \(type)"
      }
      guard columns.indices.allSatisfy({ columns[$0].isNotNull == ($0 == 0) }) else {
        return "the key of an R-tree is NOT NULL, and nothing else in it"
      }
    case .fullText(let index):
      guard primaryKey.isEmpty, columns.allSatisfy({ $0.declaredType.isEmpty && !$0.isNotNull }) else {
        return "a full-text table has neither a key nor types"
      }
      guard zip(index.unindexed, index.unindexed.dropFirst()).allSatisfy(<),
        index.unindexed.allSatisfy(columns.indices.contains)
      else { return "the UNINDEXED columns of a full-text table are places of columns, in order" }
      return index.options?.refusal
    }
    return nil
  }

  /// Why a diff may not create this virtual table, besides the rules for all tables; nil when it may.
  var moduleCreationRefusal: String? {
    guard let module else { return nil }
    if let contradiction = moduleContradiction { return contradiction }
    for suffix in module.shadowSuffixes {
      // Shadow tables must not have reserved names either.
      if let refusal = TableName(name + suffix).refusal { return "its table \"\(name)\(suffix)\": \(refusal)" }
    }
    guard case .fullText(let index) = module else { return nil }
    if index.options == nil { return "its tokenizer or an option is known to its author's program only" }
    let hidden = columns.first { ASCIIName.matches($0.name, "rank") || ASCIIName.matches($0.name, name) }
    return hidden.map { "column \"\($0.name)\": full-text tables have one of that name already" }
  }
}
