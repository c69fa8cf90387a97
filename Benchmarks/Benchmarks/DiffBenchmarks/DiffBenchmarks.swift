import Benchmark
import BenchmarkRecords
import BenchmarkRounds
import BuckiaBenchmarks

let benchmarks: @Sendable () -> Void = {
  let rows = Scale.current.rows
  let changes: [ChangedRows] = [.onePercent, .exactly(100)]
  Suite.register(
    .diff,
    changes.flatMap { changed in
      TableShape.allCases.map { shape in
        .difference(
          shape, rows: rows, changed: changed,
          figures: [
            Figure(.speed, of: .buckiaDiff, against: .sessionDiff),
            Figure(.speed, of: .buckiaRowDiff, against: .sessionDiff, target: 1),
          ]
        ) { pair in ([pair.rowDiff], []) }
      }
    })
}
