import SQLiteConnections
import SQLiteSchemas

/// What remains to be done for indexes, and to be said of them, when all changes have been applied.
extension IndexUpkeep {
  /// Makes the indexes anew that need it and can be, and names those that do not answer as the author's do.
  ///
  /// - Parameter changed: The tables that were written.
  /// - Throws: `SQLiteError` when the database fails.
  func settle(changed: [TableName], on connection: borrowing SQLiteConnection) throws -> [String] {
    let reached = try schema.reach(of: Set(changed), on: connection)
    var remarks: [String] = []
    for item in neglected where reached.contains(item.table) && schema.index(named: item.name) == nil {
      remarks.append(Self.remark(item))
    }
    for index in schema.indexes {
      let troubles = troubles(of: index, reached)
      if troubles.isEmpty {
        if let remark = try schema.remake(index, after: reached, on: connection) { remarks.append(remark) }
      } else if canRebuild(index) {
        if let reason = try connection.failure(ofRunning: index.rebuildStatement) {
          remarks += troubles.map { "\($0), and cannot be rebuilt (\(reason))" }
        } else if known.contains(where: { $0.index == index && !$0.callsNothing(but: schema) }) {
          remarks.append(
            troubles[0]
              + "; it was made anew from \"\(index.content?.text ?? "")\", but its triggers call functions: see that it "
              + "answers as your application expects")
        }
      } else {
        remarks += troubles.map { "\($0): rebuild it" }
      }
    }
    return remarks
  }

  private static func remark(_ item: NeglectedIndex) -> String {
    "the \(item.module) index \"\(item.name)\" over table \"\(item.table)\" was not kept up to date (\(item.reason))"
  }

  /// What is wrong with an index, as sentences without their end.
  private func troubles(of index: IndexTable, _ reached: Set<TableName>) -> [String] {
    var found: [String] = []
    func add(_ text: String) {
      if !found.contains(text) { found.append(text) }
    }
    for item in neglected where item.name == index.name && reached.contains(item.table) { add(Self.remark(item)) }
    for (number, copy) in copies.enumerated() where copy.index == index {
      if let failure = failures[number] {
        add(
          "the \(index.module) index \"\(index.name)\" over table \"\(copy.table)\" did not take \(failure.count) "
            + "change\(failure.count == 1 ? "" : "s") (\(failure.message))")
      }
      guard reached.contains(copy.table) else { continue }
      let others = reached.subtracting([copy.table])
      let sources = copy.otherSources.filter { others.contains($0) || schema.views[$0] != nil && !others.isEmpty }
      if let source = sources.map(\.text).min() {
        add(
          "the \(index.module) index \"\(index.name)\" over table \"\(copy.table)\" may lack changes (its triggers read "
            + "\"\(source)\", too, which was written at another time than by the author)")
      }
    }
    return found
  }
}

extension IndexTrigger {
  /// Whether it calls no function: what stands before a parenthesis are keywords, and the index itself.
  fileprivate func callsNothing(but schema: IndexSchema) -> Bool {
    mentions.functions.allSatisfy { Self.keywords.contains($0) || schema.index(named: TableName($0)) != nil }
  }

  private static let keywords: Set<String> = [
    "and", "as", "by", "case", "cast", "else", "except", "exists", "from", "in", "intersect", "join", "not", "on", "or",
    "select", "set", "then", "union", "using", "values", "when", "where",
  ]
}
