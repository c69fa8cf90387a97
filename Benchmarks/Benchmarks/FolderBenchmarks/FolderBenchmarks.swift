import Benchmark
import BenchmarkRecords
import BenchmarkRounds
import BuckiaBenchmarks

let benchmarks: @Sendable () -> Void = {
  let rows = Scale.current.rows
  // Every commit of every file waits for the disk: three rounds of that are enough.
  Suite.register(
    .folder, rounds: 3, [.smallFiles(rows / 100, preparing: .inMemory, speed: 8, extra: 0.000_150)])
  Suite.register(.folder, from: 1, TableShape.allCases.map { .opening($0, rows: rows, share: 0.15) })
}
