import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// A run of neighbouring changes of a diff with the same origins. The sender may only have relayed them.
package struct OriginRun: Equatable, Sendable {
  /// The number of changes, in the order of the changeset.
  package var count: Int64
  /// The diff that first made the changes.
  package let diff: KSUID
  /// The diffs that have set single columns, by place in the changeset.
  package let columns: [Int: KSUID]
  /// True if the changes withdraw rows instead of deleting them.
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
  /// An INSERT sets all of its columns, and none of them is older than the INSERT.
  package func diff(of column: Int, _ operation: ChangeOperation) -> KSUID {
    guard let own = columns[column] else { return diff }
    return operation == .insert ? max(own, diff) : own
  }

  /// True if another run has the same origins.
  func comesFromSame(as other: OriginRun) -> Bool {
    diff == other.diff && columns == other.columns && isWithdrawal == other.isWithdrawal
  }

  /// True unless the changes are edits of the diff itself.
  package func isNews(in id: KSUID) -> Bool { diff != id || !columns.isEmpty || isWithdrawal }

  /// All diffs that the run names.
  package var diffs: Set<KSUID> { Set(columns.values).union([diff]) }
}

/// Iterates over the origins of changes, change by change.
package struct OriginRuns {
  private let runs: [OriginRun]
  private var index = 0
  private var left: Int64

  /// Begins with the first change.
  package init(_ runs: [OriginRun]) {
    self.runs = runs
    left = runs.first?.count ?? 0
  }

  /// The origin of the next change; nil if none is given.
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

/// The origins of a diff's changes by the keys of their rows, because applying changes the order and may leave some
/// out.
package final class RowOrigins {
  /// The origins of one table's changes.
  final class Table {
    /// The origin of the first change, and usually of all others.
    private let usual: OriginRun
    /// The changes with other origins.
    private var others: [[UInt8]: OriginRun] = [:]
    /// The earliest diff among the origins.
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

    /// The origin of a row's change; nil for the diff itself.
    func run(_ key: [UInt8]) -> OriginRun? {
      let run = others.isEmpty ? usual : others[key] ?? usual
      return run.isNews(in: id) ? run : nil
    }
  }

  private var tables: [TableName: Table] = [:]

  /// Reads the keys of the changes.
  ///
  /// - Parameters:
  ///   - runs: The origins of the changes, in their order.
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

  /// The diff that first made a change; nil if no origin is given.
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

  /// The origins of a table's changes; nil if all are the diff's own.
  func table(_ name: TableName) -> Table? { tables[name].flatMap { $0.isNews ? $0 : nil } }
}
