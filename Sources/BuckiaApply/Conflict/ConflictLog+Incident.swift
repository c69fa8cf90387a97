import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

extension ConflictLog {
  /// Records a conflict of a change, with all versions of its row.
  func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ layout: ConflictLayout, _ bytes: RawSpan
  ) throws {
    // Sound: the rows are encoded before this returns, and the changeset stays longer.
    let address = bytes.withUnsafeBytes { $0 }
    let base = incident.operation == .insert ? nil : row(of: incident.old, key: [], layout, address)
    let incoming = incident.operation == .delete ? nil : row(of: incident.new, key: incident.old, layout, address)
    let local = incident.local.map { local in row { local.append(layout.columns.count, to: &$0) } }
    try record(
      incident.kind, outcome, layout.recorded, base: base, local: local, incoming: incoming,
      reason: incident.kind == .constraint ? incident.message : nil)
  }

  /// Encodes the values of a change in the order of the local row, with the key's from where the change has them.
  private func row(
    of values: [ValueSlice], key: [ValueSlice], _ layout: ConflictLayout, _ bytes: UnsafeRawBufferPointer
  ) -> Row {
    row { writer in
      for place in layout.columns.indices {
        writer.append(layout.slice(at: place, of: values, key: key) ?? .undefined, of: bytes.bytes)
      }
    }
  }
}
