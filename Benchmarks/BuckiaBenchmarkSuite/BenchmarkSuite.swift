import BuckiaBenchmarks

/// All comparisons that `make bench` runs.
enum BenchmarkSuite {
  /// A comparison and its place in the suite.
  struct Entry {
    let part: Part
    let comparison: Comparison
    /// How often each implementation runs.
    let rounds: Int
    /// The entry's position among all entries.
    let number: Int
  }

  /// The entries in the order of the report.
  ///
  /// - Parameter rows: How many rows the large tables have; all other sizes are derived from it.
  static func entries(rows: Int) -> [Entry] {
    let comparisons: [(Part, rounds: Int, [Comparison])] = [
      (.apply, 5, apply(rows: rows)),
      (.apply, 3, converging(rows: rows)),
      // SQLite's own call takes more than a minute.
      (.apply, 3, IndexedWork.allCases.map { .indexed($0, .textKey, rows: rows, target: $0.target) }),
      // The disk is synchronized after every file: five rounds would take too long.
      (.folder, 3, [.smallFiles(rows / 100, preparing: .inMemory, speed: 10, extra: 0.000_150)]),
      (.folder, 5, TableShape.allCases.map { .opening($0, rows: rows, share: 0.15) }),
      (.diff, 5, diff(rows: rows)),
      (.share, 5, share(rows: rows)),
      // rclone takes minutes for many small files, several times as long.
      (.sync, 1, transfers(of: .small, rows: rows)),
      (.sync, 3, transfers(of: .large, rows: rows)),
      (.sync, 1, TransferredFiles.Kind.allCases.map { .memoryOfTransfers($0, rows: rows) } + [.requestsOfRounds()]),
      (
        .backup, 3,
        [.backup(changed: false, rows: rows), .backup(changed: true, rows: rows), .restoring(rows: rows)]
      ),
      (.backup, 1, [.backupBytes(rows: rows), .storeSize(rows: rows), .memoryOfBackups(rows: rows)]),
      // Unlike time, memory hardly varies. At full size the files have 3 GiB and twice 2 GiB.
      (
        .memory, 1,
        LargeChangeset.Form.allCases.map { .memory(of: $0, rows: rows) }
          + [.memoryOfIndexedInserts(rows: rows), .memoryOfDifference(rows: rows)]
          + ExchangeWork.allCases.map { .memory(of: $0, rows: rows) }
          + Comparison.Encryption.allCases.map { .memory(of: $0, rows: rows) }
      ),
      (.peer, 3, peers(rows: rows)),
      (.hosts, 5, hosts(rows: rows)),
    ]
    let all = comparisons.flatMap { part, rounds, comparisons in comparisons.map { (part, $0, rounds) } }
    return all.enumerated().map { Entry(part: $1.0, comparison: $1.1, rounds: $1.2, number: $0) }
  }

  private static func apply(rows: Int) -> [Comparison] {
    TableShape.allCases.map { .inserts($0, rows: rows, target: $0.insertTarget) }
      + TableShape.allCases.map { .alterations($0, rows: rows, target: $0.alterationTarget) }
      + TableShape.allCases.map { .conflicts($0, rows: rows, resolving: 1.2, recording: 0.6) }
  }

  private static func converging(rows: Int) -> [Comparison] {
    TableShape.allCases.map { .converging(.inserts, $0, rows: rows, target: $0.keptInsertTarget, share: 2) }
      + TableShape.allCases.map { .converging(.alterations, $0, rows: rows, share: 2) }
  }

  private static func diff(rows: Int) -> [Comparison] {
    let changes: [ChangedRows] = [.onePercent, .exactly(100)]
    return changes.flatMap { changed in
      TableShape.allCases.map { shape in
        .difference(
          shape, rows: rows, changed: changed,
          figures: [
            Figure(.speed, of: .buckiaDiff, against: .sessionDiff),
            Figure(.speed, of: .buckiaRowDiff, against: .sessionDiff, target: 1),
          ]
        ) { pair in ([pair.rowDiff], []) }
      }
    }
  }

  private static func share(rows: Int) -> [Comparison] {
    TableShape.allCases.map { .sharing($0, rows: rows, changed: .exactly(100), share: 3) }
      + TableShape.allCases.map { .receivingShare($0, rows: rows, share: 1.5) }
      + TableShape.allCases.map { .openingSealed($0, rows: rows, share: 0.15) }
      + [
        .sealing(rows: 20, target: 0.001), .sealing(rows: rows, count: 1, target: 0.15),
        .envelope(rows: 20, columns: 16, bytes: 1_400),
      ]
      + Comparison.Encryption.allCases.map { .encryption($0, rows: rows, bytesPerSecond: 400_000_000) }
  }

  private static func transfers(of kind: TransferredFiles.Kind, rows: Int) -> [Comparison] {
    [.uploading(kind, rows: rows), .downloading(kind, rows: rows)]
  }

  private static func peers(rows: Int) -> [Comparison] {
    TableShape.allCases.map {
      .peerDifference($0, rows: rows, changed: .onePercent, target: $0 == .textKey ? 25 : 6)
    }
      + TableShape.allCases.map {
        .peerDifference($0, rows: rows, changed: .exactly(100), target: $0 == .textKey ? 40 : 15)
      }
      + [
        .equalFiles(rows: rows),
        .peerApplication(.inserts, .textKey, rows: rows), .peerApplication(.alterations, .textKey, rows: rows),
        .peerApplication(.conflictingInserts, .textKey, rows: rows),
      ]
  }

  private static func hosts(rows: Int) -> [Comparison] {
    HostCall.allCases.flatMap { [.calls($0, rows: 20, repetitions: 200), .calls($0, rows: rows, target: 0.1)] }
  }
}

extension IndexedWork {
  /// How many times as fast as SQLite's own call it should be.
  fileprivate var target: Double {
    switch self {
    case .inserts, .additions: 4
    case .updates: 1.5
    }
  }
}

extension TableShape {
  /// How many times as fast as SQLite's own call inserts should be.
  fileprivate var insertTarget: Double {
    switch self {
    case .textKey: 3.5
    case .integerKey: 2.5
    case .withoutRowID: 4.5
    }
  }

  /// The same where it is noted which diff has set what, and kept what takes it back.
  fileprivate var keptInsertTarget: Double {
    switch self {
    case .textKey: 2
    case .integerKey: 1.5
    case .withoutRowID: 2.5
    }
  }

  /// How many times as fast as SQLite's own call updates and deletes should be.
  fileprivate var alterationTarget: Double {
    switch self {
    case .textKey: 1.4
    case .integerKey: 1.15
    case .withoutRowID: 1.8
    }
  }
}
