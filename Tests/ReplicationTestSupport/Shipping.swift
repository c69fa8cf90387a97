import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// Transfers differences without files, for tests of the engine without the façade.
package enum Shipping {
  /// Compares two databases and applies the difference to a third, with definitions.
  @discardableResult
  package static func ship(
    from older: String, to newer: String, onto target: String, options: DiffOptions = DiffOptions(),
    settings: ApplySettings = ApplySettings(time: 2_000_000_000_000)
  ) throws -> ApplyResult {
    let difference = try DatabaseComparison.run(older: older, newer: newer, options: options)
    return try apply(difference, to: target, settings: settings)
  }

  /// A difference in the form in which the engine reads it from a file.
  package static func incoming(
    _ difference: DatabaseDifference, digest: [UInt8] = (0..<32).map { _ in UInt8.random(in: 0...255) }
  ) throws -> IncomingChanges {
    try IncomingChanges(
      key: LedgerKey(
        sender: "", id: KSUID(timestamp: 1, payloadHigh: .random(in: 0...(.max)), payloadLow: 2), digest: digest,
        isRaw: false), file: "test.bdiff", definitions: difference.tables.map(\.definition),
      changeset: difference.changeset)
  }

  /// Applies a difference in a separate transaction.
  package static func apply(
    _ difference: DatabaseDifference, to target: String,
    settings: ApplySettings = ApplySettings(time: 2_000_000_000_000),
    digest: [UInt8] = (0..<32).map { _ in UInt8.random(in: 0...255) }
  ) throws -> ApplyResult {
    let incoming = try incoming(difference, digest: digest)
    let connection = try SQLiteConnection(opening: target, as: .readWrite)
    let transaction = try SQLiteTransaction(on: connection)
    let plan = try Receiver.plan(incoming, on: connection, settings: settings)
    let result = try plan.apply(in: transaction)
    try transaction.commit()
    return result
  }
}
