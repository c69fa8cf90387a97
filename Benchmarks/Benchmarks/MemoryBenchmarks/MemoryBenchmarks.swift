import Benchmark
import BenchmarkRecords
import BenchmarkRounds
import BuckiaBenchmarks

let benchmarks: @Sendable () -> Void = {
  // 3 GiB and twice 2 GiB at full size. One round: memory does not vary as time does.
  let rows = Scale.current.rows
  Suite.register(
    .memory, rounds: 1,
    LargeChangeset.Form.allCases.map { .memory(of: $0, rows: rows) } + [.memoryOfDifference(rows: rows)])
}
