import BuckiaBytes
import SQLiteSchemas
import SQLiteChangesets

/// Neighbouring changes of a diff that come from the same diffs: its sender may only have passed them on.
package struct OriginRun: Equatable, Sendable {
  /// How many changes there are, in the order of the changeset.
  package var count: Int64
  /// The diff that has made them first.
  package let diff: KSUID
  /// The diffs that have set single columns, by the column's place in the changeset.
  package let columns: [Int: KSUID]
  /// Whether they withdraw rows that nobody has deleted.
  package let isWithdrawal: Bool

  /// Makes a run.
  package init(count: Int64, diff: KSUID, columns: [Int: KSUID] = [:], isWithdrawal: Bool = false) {
    self.count = count
    self.diff = diff
    self.columns = columns
    self.isWithdrawal = isWithdrawal
  }

  /// The diff that has set a column.
  ///
  /// An INSERT sets all of its columns, so none of them is older than it.
  package func diff(of column: Int, _ operation: ChangeOperation) -> KSUID {
    guard let own = columns[column] else { return diff }
    return operation == .insert ? max(own, diff) : own
  }

  /// True if changes come from the same diffs as others.
  func comesFromSame(as other: OriginRun) -> Bool {
    diff == other.diff && columns == other.columns && isWithdrawal == other.isWithdrawal
  }

  /// Whether it says anything but that the diff itself has made the changes.
  package func isNews(in id: KSUID) -> Bool { diff != id || !columns.isEmpty || isWithdrawal }

  /// All diffs that it names.
  package var diffs: Set<KSUID> { Set(columns.values).union([diff]) }
}

/// Goes through the runs of a diff, change by change.
package struct OriginRuns {
  private let runs: [OriginRun]
  private var index = 0
  private var left: Int64

  /// Begins with the first change.
  package init(_ runs: [OriginRun]) {
    self.runs = runs
    left = runs.first?.count ?? 0
  }

  /// What is said of the next change; nil for nothing.
  package mutating func next() -> OriginRun? {
    while left == 0 {
      index += 1
      guard index < runs.count else { return nil }
      left = runs[index].count
    }
    guard index < runs.count else { return nil }
    left -= 1
    return runs[index]
  }
}

/// Which changes of a diff come from other diffs, by the keys of their rows: applying takes them in another order, and may leave some
/// out.
package final class RowOrigins {
  /// Those of one table.
  final class Table {
    /// Where the first change comes from, and mostly all others do.
    private let usual: OriginRun
    /// The changes that come from elsewhere.
    private var others: [[UInt8]: OriginRun] = [:]
    /// The earliest diff of all.
    private(set) var earliest: KSUID
    private let id: KSUID

    fileprivate init(_ run: OriginRun, in id: KSUID) {
      usual = run
      self.id = id
      earliest = id
    }

    /// - Parameter key: The values of the row's key.
    fileprivate func add(_ run: OriginRun, _ key: @autoclosure () -> [UInt8]) {
      if !run.comesFromSame(as: usual) { others[key()] = run }
      earliest = run.columns.values.reduce(min(earliest, run.diff)) { min($0, $1) }
    }

    /// True if any change comes from another diff.
    fileprivate var isNews: Bool { !others.isEmpty || usual.isNews(in: id) }

    /// Where the change of a row comes from; nil for the diff itself.
    func run(_ key: [UInt8]) -> OriginRun? {
      let run = others.isEmpty ? usual : others[key] ?? usual
      return run.isNews(in: id) ? run : nil
    }
  }

  private var tables: [TableName: Table] = [:]

  /// Looks the keys up.
  ///
  /// - Parameters:
  ///   - runs: What is said of the changes, in their order.
  ///   - changeset: The changes.
  ///   - id: The diff.
  /// - Throws: `ChangesetError` when the changes are damaged, `ByteStreamError` when they cannot be read.
  package init(
    _ runs: [OriginRun], of changeset: TemporaryBuffer, _ id: KSUID, knowing summary: ChangesetSummary? = nil
  ) throws {
    var runs = OriginRuns(runs)
    var last: (header: ChangesetTable, table: Table)?
    try Changesets.forEachChange(of: changeset, knowing: summary) { change, reader, bytes in
      guard let run = runs.next(), let header = reader.table else { return }
      if last?.header != header {
        let name = TableName(header.name)
        let table = tables[name] ?? Table(run, in: id)
        tables[name] = table
        last = (header, table)
      }
      last?.table.add(run, Self.key(change, reader, bytes, header))
    }
  }

  /// The diff that has made a change first; nil where nothing is said of it.
  package func diff(of change: Change, _ reader: ChangesetReader, _ bytes: RawSpan) -> KSUID? {
    guard let header = reader.table, let table = tables[TableName(header.name)] else { return nil }
    return table.run(Self.key(change, reader, bytes, header))?.diff
  }

  private static func key(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ header: ChangesetTable
  ) -> [UInt8] {
    let row = change.operation == .insert ? reader.new : reader.old
    return row.indices.filter { header.isKey($0) }.flatMap { bytes.array(row[$0].encoded) }
  }

  /// Those of a table; nil where there are none.
  func table(_ name: TableName) -> Table? { tables[name].flatMap { $0.isNews ? $0 : nil } }
}
