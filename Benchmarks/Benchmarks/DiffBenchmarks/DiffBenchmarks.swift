import Benchmark
import BenchmarkRecords
import BenchmarkRounds
import BuckiaBenchmarks

let benchmarks: @Sendable () -> Void = {
  let rows = Scale.current.rows
  let changes: [ChangedRows] = [.onePercent, .exactly(100)]
  Suite.register(
    .diff,
    changes.flatMap { changed in TableShape.allCases.map { .difference($0, rows: rows, changed: changed) } })
}
