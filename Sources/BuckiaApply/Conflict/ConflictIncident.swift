import BuckiaLedger

/// A conflict as it happened: the change still in the bytes of the changeset, the local row where a statement stands.
struct ConflictIncident {
  let kind: ConflictKind
  let change: DecodedChange
  let local: CurrentRow?
  /// SQLite's words about a constraint, as UTF-8.
  var message: [UInt8] = []
}
