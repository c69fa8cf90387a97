import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

/// What is done for indexes after all changes have been applied.
extension IndexMaintenance {
  /// Rebuilds the indexes that are incomplete and can be rebuilt.
  ///
  /// - Parameter changed: The tables that were written.
  /// - Returns: Remarks for the report about indexes that are or may be incomplete.
  /// - Throws: `SQLiteError` when the database fails.
  func rebuildIncompleteIndexes(changed: [TableName]) throws -> [Remark] {
    let reached = Set(changed)
    var remarks: [Remark] = []
    for item in unmaintained where reached.contains(item.table) && schema.index(named: item.name) == nil {
      remarks.append(Remark(.indexIncomplete, item.module, item.name.text, item.table.text, Self.problem(item)))
    }
    for index in schema.indexes {
      let problems = problems(of: index, reached)
      func remark(_ code: Remark.Code, _ problem: Problem, _ detail: String...) -> Remark {
        Remark(code, [index.module, index.name.text, problem.table.text, problem.text] + detail)
      }
      if problems.isEmpty {
        if let remark = try schema.rebuildWithoutTriggers(index, after: reached, on: session.connection) {
          remarks.append(remark)
        }
      } else if canRebuild(index) {
        if let reason = try session.connection.failure(ofRunning: index.rebuildStatement) {
          remarks += problems.map { remark(.indexNotRebuilt, $0, reason) }
        } else if known.contains(where: { $0.index == index && !$0.callsNothing(but: schema) }) {
          remarks.append(remark(.indexRebuiltWithoutFunctions, problems[0], index.content?.text ?? ""))
        }
      } else {
        remarks += problems.map { remark(.indexToRebuild, $0) }
      }
    }
    return remarks
  }

  /// Why an index is or may be incomplete: the table whose changes it lacks, and the predicate of a sentence.
  private typealias Problem = (table: TableName, text: String)

  private static func problem(_ item: UnmaintainedIndex) -> String { "was not kept up to date (\(item.reason))" }

  private func problems(of index: IndexTable, _ reached: Set<TableName>) -> [Problem] {
    var found: [Problem] = []
    func add(_ table: TableName, _ text: String) {
      if !found.contains(where: { $0 == (table, text) }) { found.append((table, text)) }
    }
    for item in unmaintained where item.name == index.name && reached.contains(item.table) {
      add(item.table, Self.problem(item))
    }
    for (number, copy) in copies.enumerated() where copy.index == index {
      if let failure = failures[number] {
        add(
          copy.table,
          "did not take \(failure.count) change\(failure.count == 1 ? "" : "s") (\(failure.message))")
      }
      guard reached.contains(copy.table) else { continue }
      let others = reached.subtracting([copy.table])
      let sources = copy.otherSources.filter { others.contains($0) || schema.views[$0] != nil && !others.isEmpty }
      if let source = sources.map(\.text).min() {
        add(
          copy.table,
          "may lack changes (its triggers read \"\(source)\", too, which was written at another time than by the author)"
        )
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
