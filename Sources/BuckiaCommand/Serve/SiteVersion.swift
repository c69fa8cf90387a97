import Buckia
import BuckiaBytes
import Dispatch

/// Tells whether what the pages show has changed: the ledger, the conflicts, or what lies in the inbound folders.
///
/// It is asked every few seconds. The database is only read where its file has been written since.
final class SiteVersion: @unchecked Sendable {
  private let database: ServedDatabase
  // The rest is used on this queue alone.
  private let queue = DispatchQueue(label: "buckia.serve.version")
  private var files: [FileIdentity?] = []
  private var ledger = 0

  init(of database: ServedDatabase) { self.database = database }

  /// The version: the same text as long as nothing has changed.
  ///
  /// - Throws: `BuckiaError` when the database or a folder cannot be read.
  func current() throws -> String {
    try queue.sync {
      let now = ["", "-wal", "-journal"].map { FileIdentity.ofFile(at: database.manager.path + $0) }
      if now != files {
        ledger = try Self.ledger(of: database)
        files = now
      }
      var hasher = Hasher()
      hasher.combine(ledger)
      for folder in database.folders {
        for file in try folder.files() {
          hasher.combine(file.path)
          hasher.combine(file.identity)
        }
      }
      return String(UInt(bitPattern: hasher.finalize()), radix: 36)
    }
  }

  private static func ledger(of database: ServedDatabase) throws -> Int {
    let status = try database.manager.status()
    var hasher = Hasher()
    for count in [status.conflicts, status.openConflicts] { hasher.combine(count) }
    if let counts = status.ledger {
      for count in [counts.applied, counts.held, counts.waiting, counts.quarantined, counts.rejected] {
        hasher.combine(count)
      }
    }
    // A conflict that is decided anew changes no count.
    hasher.combine(try database.manager.newestResolution())
    hasher.combine(status.recordedAt)
    hasher.combine(status.trust?.rawValue)
    return hasher.finalize()
  }
}
