import Benchmark
import BenchmarkRecords
import BenchmarkRounds
import BuckiaBenchmarks

let benchmarks: @Sendable () -> Void = {
  let rows = Scale.current.rows
  Suite.register(
    .apply,
    TableShape.allCases.map { .inserts($0, rows: rows, target: $0.insertTarget) }
      + TableShape.allCases.map { .alterations($0, rows: rows, target: $0.alterationTarget) }
      + TableShape.allCases.map { .conflicts($0, rows: rows, resolving: 1.2, recording: 0.6) })
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

  /// How many times as fast as SQLite's own call updates and deletes should be.
  fileprivate var alterationTarget: Double {
    switch self {
    case .textKey: 1.4
    case .integerKey: 1.15
    case .withoutRowID: 1.8
    }
  }
}
