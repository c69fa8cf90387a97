import Benchmark
import BenchmarkRecords
import BenchmarkRounds
import BuckiaBenchmarks

let benchmarks: @Sendable () -> Void = {
  let rows = Scale.current.rows
  Suite.register(
    .peer, rounds: 3,
    TableShape.allCases.map { .peerDifference($0, rows: rows, changed: .onePercent) }
      + [
        .peerDifference(.textKey, rows: rows, changed: .exactly(100)),
        .peerApplication(.inserts, .textKey, rows: rows), .peerApplication(.alterations, .textKey, rows: rows),
        .peerApplication(.conflictingInserts, .textKey, rows: rows),
      ])
}
