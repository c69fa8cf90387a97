import Benchmark
import BenchmarkRecords
import BenchmarkRounds
import BuckiaBenchmarks

let benchmarks: @Sendable () -> Void = {
  let rows = Scale.current.rows
  Suite.register(
    .peer, rounds: 3,
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
      ])
}
