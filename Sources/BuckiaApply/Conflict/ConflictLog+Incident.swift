import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

extension ConflictLog {
  /// Records a conflict of a change, with all versions of its row.
  ///
  /// - Parameter rule: The rule that has decided it; nil where none has.
  func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ layout: ConflictLayout, decidedBy rule: Int64?,
    _ bytes: RawSpan
  ) throws {
    // Sound: the rows are encoded before this returns, and the changeset stays longer.
    let address = bytes.withUnsafeBytes { $0 }
    let operation = incident.change.operation
    let base = operation == .insert ? nil : row(of: incident.change, isNew: false, layout, address)
    let incoming = operation == .delete ? nil : row(of: incident.change, isNew: true, layout, address)
    let local = incident.local.map { local in row { local.append(layout.columns.count, to: &$0) } }
    var details: Details?
    if rule != nil || incident.written != nil || !incident.others.isEmpty {
      details = Details()
      details?.rule = rule
      details?.written = incident.written.map { record in row { $0.append(encoded: record) } }
      if !incident.others.isEmpty { details?.others = row { $0.append(encoded: incident.others) } }
    }
    try record(
      incident.kind, outcome, layout.recorded, base: base, local: local, incoming: incoming,
      reason: incident.kind == .constraint || !incident.message.isEmpty ? incident.message : nil, details: details)
  }

  /// Encodes the values of a change in the order of the local row.
  private func row(
    of change: DecodedChange, isNew: Bool, _ layout: ConflictLayout, _ bytes: UnsafeRawBufferPointer
  ) -> Row {
    row { writer in
      for place in layout.columns.indices {
        writer.append(layout.slice(at: place, of: change, isNew: isNew) ?? .undefined, of: bytes.bytes)
      }
    }
  }
}
