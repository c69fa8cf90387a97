import SQLiteConnections
import SQLiteSchemas

/// What is done for indexes after all changes have been applied.
extension IndexMaintenance {
  /// Rebuilds the indexes that are incomplete and can be rebuilt.
  ///
  /// - Parameter changed: The tables that were written.
  /// - Returns: Messages for the report about indexes that are or may be incomplete.
  /// - Throws: `SQLiteError` when the database fails.
  func rebuildIncompleteIndexes(changed: [TableName]) throws -> [String] {
    let reached = try session.tablesChanged(with: Set(changed))
    var remarks: [String] = []
    for item in unmaintained where reached.contains(item.table) && schema.index(named: item.name) == nil {
      remarks.append(Self.remark(item))
    }
    for index in schema.indexes {
      let problems = problems(of: index, reached)
      if problems.isEmpty {
        if let remark = try schema.rebuildWithoutTriggers(index, after: reached, on: session.connection) {
          remarks.append(remark)
        }
      } else if canRebuild(index) {
        if let reason = try session.connection.failure(ofRunning: index.rebuildStatement) {
          remarks += problems.map { "\($0), and cannot be rebuilt (\(reason))" }
        } else if known.contains(where: { $0.index == index && !$0.callsNothing(but: schema) }) {
          remarks.append(
            problems[0]
              + "; it was made anew from \"\(index.content?.text ?? "")\", but its triggers call functions: see that it "
              + "answers as your application expects")
        }
      } else {
        remarks += problems.map { "\($0): rebuild it" }
      }
    }
    return remarks
  }

  private static func remark(_ item: UnmaintainedIndex) -> String {
    "the \(item.module) index \"\(item.name)\" over table \"\(item.table)\" was not kept up to date (\(item.reason))"
  }

  /// Why an index is or may be incomplete, as sentences without a full stop.
  private func problems(of index: IndexTable, _ reached: Set<TableName>) -> [String] {
    var found: [String] = []
    func add(_ text: String) {
      if !found.contains(text) { found.append(text) }
    }
    for item in unmaintained where item.name == index.name && reached.contains(item.table) { add(Self.remark(item)) }
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
  /// Whether the trigger calls no function. Keywords and the index itself can be followed by a parenthesis, too.
  fileprivate func callsNothing(but schema: IndexSchema) -> Bool {
    references.functions.allSatisfy { Self.keywords.contains($0) || schema.index(named: TableName($0)) != nil }
  }

  private static let keywords: Set<String> = [
    "and", "as", "by", "case", "cast", "else", "except", "exists", "from", "in", "intersect", "join", "not", "on", "or",
    "select", "set", "then", "union", "using", "values", "when", "where",
  ]
}
