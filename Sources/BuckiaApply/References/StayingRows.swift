import SQLiteChangesets
import SQLiteSchemas

/// The rows of one table that a diff may not change as it says, because a reference would lead nowhere then.
final class StayingRows {
  /// What stays of a row.
  struct Row {
    /// True if other rows refer to it, so that it may not be deleted.
    var isReferredTo = false
    /// The places in the local layout of the columns that keep their values.
    var places: Set<Int> = []
    /// Why, for people.
    var reason: [UInt8]
  }

  /// The places of the columns that others refer to, where no row may lose any of their values or be deleted; nil for most tables.
  var referredPlaces: Set<Int>?

  /// What stays of a row; nil where everything may be changed.
  subscript(key: [UInt8]) -> Row? {
    guard let referredPlaces else { return rows[key] }
    return Row(
      isReferredTo: true, places: referredPlaces.union(rows[key]?.places ?? []),
      reason: rows[key]?.reason ?? Array("rows here may refer to it, so it stays".utf8))
  }

  /// The rows, by the values of their keys in the format of changesets.
  private var rows: [[UInt8]: Row] = [:]
  /// The rows that were kept in this run: as they are here, and as the changes call them.
  private(set) var kept: [(local: [UInt8], incoming: [UInt8])] = []
  private var recorded: Set<[UInt8]> = []

  /// Forgets what a run has done.
  func beginRun() {
    kept = []
    recorded = []
  }

  /// Keeps a row.
  ///
  /// - Returns: True if it was not kept before.
  @discardableResult
  func keep(_ key: [UInt8], because reason: @autoclosure () throws -> String) rethrows -> Bool {
    if rows[key]?.isReferredTo == true { return false }
    if rows[key] == nil { rows[key] = Row(reason: Array(try reason().utf8)) }
    rows[key]?.isReferredTo = true
    return true
  }

  /// Keeps the values of some columns of a row.
  func keep(_ places: [Int], of key: [UInt8], because reason: @autoclosure () throws -> String) rethrows {
    if rows[key] == nil { rows[key] = Row(reason: Array(try reason().utf8)) }
    rows[key]?.places.formUnion(places)
  }

  /// Notes that a row was kept which a change was to delete.
  func noteKept(_ local: [UInt8], as incoming: [UInt8]) { kept.append((local, incoming)) }

  /// Notes that a conflict is recorded for a row.
  ///
  /// - Returns: True if none was recorded for it in this run.
  func noteRecorded(_ key: [UInt8]) -> Bool { recorded.insert(key).inserted }
}
