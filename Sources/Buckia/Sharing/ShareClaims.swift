import BuckiaDiff
import BuckiaFormat
import BuckiaLedger
import BuckiaSharing
import SQLiteSchemas

/// What a diff of a share says of what its stream has, beside its changes.
struct ShareClaims {
  /// The sums of the tables.
  let states: [SentState.Claim]
  /// The rows that are sent anew.
  let resent: [ResendRequest]
  /// The rows of the receiver's streams that they are asked for.
  let asked: [StateEntry]

  /// Says it in a manifest.
  ///
  /// - Parameters:
  ///   - manifest: That of the diff.
  ///   - difference: What is sent.
  func write(into manifest: inout Manifest, of difference: DatabaseDifference) {
    let sent = Set(difference.tables.map { TableName($0.definition.name) } + resent.map(\.table))
    manifest.states = states.compactMap { claim in
      guard sent.contains(TableName(claim.table)), let digest = Manifest.State.Digest(claim.digest) else { return nil }
      let buckets = claim.buckets?.sorted { $0.key < $1.key }
        .compactMap { Manifest.State.Bucket($0.key, beginning: $0.value) }
      return Manifest.State(table: claim.table, rows: claim.rows, digest: digest, buckets: buckets)
    }
    manifest.resent = resent.map { Manifest.Rows(table: $0.table.text, buckets: $0.buckets?.sorted()) }
    // Who does not understand it would take them for rows that it has twice.
    if !resent.isEmpty { manifest.critical.append("resent") }
    manifest.requests = asked.compactMap { state in
      let buckets = state.difference.flatMap { $0.isEmpty ? nil : $0 }
      return StreamID(state.stream).map { Manifest.Rows(of: $0, table: state.table.text, buckets: buckets) }
    }
  }
}
