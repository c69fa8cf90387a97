import BuckiaKSUID
import BuckiaSchemaPlans

/// Gives new diffs their ids.
package protocol OutgoingIDs {
  /// Makes an id that is greater than all before it and than those given.
  ///
  /// - Parameter observed: Ids that were applied before.
  /// - Returns: The id, and a remark when the clock behind it could not be kept.
  func next(after observed: [KSUID]) throws -> (id: KSUID, remark: Remark?)
  /// Notes that a file is about to be made from a database.
  ///
  /// - Returns: A remark when it could not be noted.
  func noteOutgoing(_ id: KSUID, from database: String) -> Remark?
}

extension BuckiaHome: OutgoingIDs {
  package func next(after observed: [KSUID]) throws -> (id: KSUID, remark: Remark?) {
    let made = try newIDs(after: observed, unixSeconds: WallClock.unixMilliseconds / 1_000)
    return (made.ids[0], made.remark)
  }
}
