/// What `buckia bench` measures without a database: a short version of the whole suite.
package enum ShortSuite {
  /// The default number of rows of the tables.
  package static let defaultRows = 60_000
  /// How often each implementation runs.
  package static let rounds = 3

  /// The comparisons, in the order of the report.
  ///
  /// - Parameter rows: How many rows each table has, at least 20.
  package static func comparisons(rows: Int) -> [Comparison] {
    var comparisons: [Comparison] = []
    for shape in TableShape.allCases { comparisons.append(.inserts(shape, rows: rows)) }
    for shape in TableShape.allCases { comparisons.append(.alterations(shape, rows: rows, only: .updates)) }
    for shape in TableShape.allCases { comparisons.append(.alterations(shape, rows: rows, only: .deletes)) }
    for shape in TableShape.allCases { comparisons.append(.conflicts(shape, rows: max(1, rows / 4))) }
    for work in IndexedWork.allCases { comparisons.append(.indexed(work, .textKey, rows: rows)) }
    comparisons.append(.smallFiles(max(1, rows / 1_000)))
    comparisons.append(.opening(.textKey, rows: rows))
    for shape in TableShape.allCases { comparisons.append(.difference(shape, rows: rows, changed: .onePercent)) }
    return comparisons
  }
}
