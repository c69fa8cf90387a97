import BuckiaDiff
import BuckiaFormat
import BuckiaBytes
import SQLiteSchemas

/// Gives new diffs their ids, and knows who makes them.
package protocol OutgoingIDs {
  /// Makes an id that is greater than all before it and than those given.
  ///
  /// - Parameter observed: Ids that were applied before.
  /// - Returns: The id, and a remark when the clock behind it could not be kept.
  func next(after observed: [KSUID]) throws -> (id: KSUID, remark: Remark?)
  /// Notes that a file is about to be made from a database.
  ///
  /// - Returns: What its manifest says of the sender, and what people should know.
  func begin(_ id: KSUID, from database: RowSource) throws -> (sender: Manifest.Sender?, remarks: [Remark])
}

extension BuckiaHome: OutgoingIDs {
  package func next(after observed: [KSUID]) throws -> (id: KSUID, remark: Remark?) {
    let made = try newIDs(after: observed, unixSeconds: WallClock.unixMilliseconds / 1_000)
    return (made.ids[0], made.remark)
  }

  package func begin(_ id: KSUID, from database: RowSource) throws -> (sender: Manifest.Sender?, remarks: [Remark]) {
    let origin = try DiffOrigin(of: database, making: id, in: self)
    var remarks = origin.remarks
    if let remark = try Remark.clockBehind(id, on: database.connection) { remarks.insert(remark, at: 0) }
    if let remark = noteOutgoing(id, from: database.connection.path, replica: origin.replica?.id) {
      remarks.append(remark)
    }
    return (origin.sender, remarks)
  }
}
