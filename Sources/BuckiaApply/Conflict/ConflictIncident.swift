import BuckiaLedger

/// A conflict as it happened: the change still in the bytes of the changeset, the local row where a statement stands.
struct ConflictIncident {
  let kind: ConflictKind
  let change: DecodedChange
  let local: CurrentRow?
  /// SQLite's words about a constraint, or the engine's about another conflict, as UTF-8.
  var message: [UInt8] = []
  /// Whether the local row is another than the change's author means, so that the two are no versions of one row.
  var isOfAnotherRow = false
  /// Whether a later diff has inserted the row that a DELETE is about.
  var isOutdated = false
  /// The row that a resolver has written, as a record; nil where none has.
  var written: [UInt8]?
  /// The keys of the rows that have a UNIQUE value which this one was to get, one after the other.
  var others: [UInt8] = []

  /// What happened, for people; nil where the kind says all.
  var words: String? {
    if !message.isEmpty { return String(decoding: message, as: UTF8.self) }
    return kind == .conflict ? "another row with this key is here" : nil
  }
}
