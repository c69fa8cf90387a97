import BuckiaBytes
import SQLiteChangesets

/// What one diff did to rows of one table: which columns it set, or that it inserted or deleted them.
///
/// A stamp is recorded once, in `buckia_stamp`, and the clocks of all rows to which the diff did this refer to it by
/// its number.
package struct RowStamp: Sendable, Equatable {
  /// Its number.
  package let number: Int64
  /// The diff that made the change first, however often it was passed on.
  package let diff: KSUID
  /// What was done.
  package let operation: ChangeOperation
  /// The columns that were set; none for a DELETE.
  package let columns: ColumnSet
}

/// The stamps of one row: who wrote which of its columns last, and since when the row has been there.
///
/// They are what is left of all changes of the row that have arrived, in whatever order: a column belongs to the
/// greatest diff that has set it, a row was inserted by the greatest INSERT, and deleted by the greatest DELETE.
package struct RowStamps: Sendable {
  /// The stamps that count, the greatest diff first.
  package private(set) var stamps: [RowStamp] = []

  /// Begins with none: the row is as all began with it.
  package init() {}

  /// Takes stamps that were recorded.
  package init(_ stamps: [RowStamp]) {
    self.stamps = stamps.sorted { $0.diff > $1.diff }
  }

  /// The diff that has inserted the row; nil where it was there from the beginning.
  package var insertion: KSUID? { stamps.first { $0.operation == .insert }?.diff }
  /// The diff that has deleted the row, where it is not there.
  package var deletion: KSUID? { stamps.first { $0.operation == .delete }?.diff }

  /// The diff that has set a column; nil for none.
  package func setter(of position: Int) -> KSUID? { stamps.first { $0.columns.contains(position) }?.diff }

  /// Adds what another diff did, and drops what no longer counts.
  package mutating func add(_ stamp: RowStamp) {
    guard stamp.operation != .delete else {
      // Columns that were set later are kept elsewhere until the row is there again.
      stamps = [deletion.map { $0 > stamp.diff } == true ? stamps.first { $0.operation == .delete } ?? stamp : stamp]
      return
    }
    stamps.removeAll { $0.operation == .delete || $0.number == stamp.number }
    let place = stamps.firstIndex { $0.diff < stamp.diff } ?? stamps.endIndex
    stamps.insert(stamp, at: place)
    var covered = ColumnSet()
    var isInserted = false
    stamps.removeAll { stamp in
      let isInsertion = stamp.operation == .insert && !isInserted
      if isInsertion { isInserted = true }
      if !isInsertion, covered.isSuperset(of: stamp.columns) { return true }
      covered.formUnion(stamp.columns)
      return false
    }
  }
}
