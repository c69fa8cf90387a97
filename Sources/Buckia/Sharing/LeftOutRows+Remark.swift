import BuckiaLedger
import SQLiteSchemas
import BuckiaSharing

extension LeftOutRows {
  /// What to do about the rows, with the first of them as an example.
  var remark: Remark {
    let code: Remark.Code =
      switch reason {
      case .noParent: .rowsWithoutParent
      case .parentNotShared: .parentNotShared
      case .parentLeftOut: .parentLeftOut
      case .heldBack: .rowsHeldBack
      case .conditionFails: .conditionFails
      }
    let key = rows.first?.key.map { "\($0)" }.joined(separator: ", ") ?? ""
    return Remark(
      code, table, String(count), columns.joined(separator: ", "), parent, key.escaped(limit: 60))
  }
}

extension [LeftOutRows] {
  /// How many rows there are of each table, as the ledger keeps it.
  func entries(of share: Int64) -> [LeftOutEntry] {
    var counts: [TableName: Int64] = [:]
    for rows in self { counts[TableName(rows.table), default: 0] += Int64(rows.count) }
    return counts.map { LeftOutEntry(share: share, table: $0, count: $1) }
  }
}
