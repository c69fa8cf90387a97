import BuckiaDiff
import BuckiaFormat
import BuckiaBytes
import SQLiteSchemas

/// Gives the diffs of a replica their ids: from the seed of the simulation and the replica's own clock.
final class SimulatedIDs: OutgoingIDs {
  /// What the replica takes for the time, in seconds of Unix time.
  var unixSeconds: Int64 = 0
  private var clock = KSUIDClock()
  private var random: SimulationRandom

  init(seed: UInt64) { random = SimulationRandom(seed: seed) }

  func next(after observed: [KSUID]) throws -> (id: KSUID, remark: Remark?) {
    for id in observed { clock.observe(id) }
    return (try clock.next(unixSeconds: unixSeconds, using: &random), nil)
  }

  func begin(_ id: KSUID, from database: RowSource) -> (sender: Manifest.Sender?, remarks: [Remark]) { (nil, []) }
}
