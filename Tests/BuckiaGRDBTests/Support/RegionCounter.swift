#if GRDB
  import Foundation
  import GRDB

  /// Counts how often observations of tables fire.
  ///
  /// `@unchecked Sendable`: the lock is held whenever the counts are used, and only the first thread uses the
  /// observations.
  final class RegionCounter: @unchecked Sendable {
    private let lock = NSLock()
    private var counts: [String: Int] = [:]
    private var observations: [AnyDatabaseCancellable] = []

    /// Starts to observe tables, each separately.
    init(_ tables: String..., in writer: any DatabaseWriter) {
      observations = tables.map { table in
        DatabaseRegionObservation(tracking: Table(table)).start(in: writer) { [weak self] error in
          self?.count("\(table): \(error)")
        } onChange: { [weak self] _ in
          self?.count(table)
        }
      }
    }

    private func count(_ name: String) { lock.withLock { counts[name, default: 0] += 1 } }

    /// How often each table's observation has fired since the last call. Tables without a notification are left out.
    func take() -> [String: Int] {
      lock.withLock {
        defer { counts = [:] }
        return counts
      }
    }
  }
#endif
