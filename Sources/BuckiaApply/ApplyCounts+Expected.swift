import BuckiaLedger
import SQLiteChangesets

extension ApplyCounts {
  /// The counts when every change of a changeset is written.
  init(expecting summary: ChangesetSummary) {
    self.init(inserted: summary.inserted, updated: summary.updated, deleted: summary.deleted)
  }

  /// The counts when every change of one of its tables is written.
  init(expecting table: ChangesetSummary.Table) {
    self.init(inserted: table.inserted, updated: table.updated, deleted: table.deleted)
  }
}
