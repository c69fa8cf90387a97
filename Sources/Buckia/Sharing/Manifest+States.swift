import BuckiaDiff
import BuckiaDiffFiles
import BuckiaSharing
import SQLiteSchemas

extension Manifest {
  /// What a stream holds, as far as a diff changes it.
  ///
  /// - Parameters:
  ///   - claims: The sums of the tables.
  ///   - difference: What is sent.
  static func states(_ claims: [SentState.Claim], of difference: DatabaseDifference) -> [State] {
    let sent = Set(difference.tables.map { TableName($0.definition.name) })
    return claims.compactMap { claim in
      guard sent.contains(TableName(claim.table)), let digest = State.Digest(claim.digest) else { return nil }
      let buckets = claim.buckets?.sorted { $0.key < $1.key }
        .compactMap { State.Bucket($0.key, beginning: $0.value) }
      return State(table: claim.table, rows: claim.rows, digest: digest, buckets: buckets)
    }
  }
}
