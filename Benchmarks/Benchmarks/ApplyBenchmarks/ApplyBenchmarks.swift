import Benchmark
import Foundation
import Workloads

/// How many rows; `BUCKIA_BENCH_ROWS` sets it.
private let rows = ProcessInfo.processInfo.environment["BUCKIA_BENCH_ROWS"].flatMap(Int.init) ?? 1_000_000

let benchmarks: @Sendable () -> Void = {
  Benchmark.defaultConfiguration = .init(
    metrics: [.wallClock, .cpuTotal, .peakMemoryResident], warmupIterations: 0, maxDuration: .seconds(120),
    maxIterations: 5)
  for shape in TableShape.allCases {
    let work = Prepared(shape)
    for contender in Contender.allCases {
      Benchmark("\(rows) inserts, \(shape.rawValue): \(contender.rawValue)") { benchmark in
        let workload = try work.workload()
        let folder = try ScratchFolder()
        let connection = try workload.emptyDatabase(in: folder)
        benchmark.startMeasurement()
        try contender.apply(workload, to: connection)
        benchmark.stopMeasurement()
      }
    }
  }
}

/// A workload that is made when it is first needed, and once: each benchmark runs in a process of its own.
private final class Prepared: @unchecked Sendable {
  private let shape: TableShape
  // The lock guards the workload.
  private let lock = NSLock()
  private var made: InsertWorkload?

  init(_ shape: TableShape) { self.shape = shape }

  func workload() throws -> InsertWorkload {
    try lock.withLock {
      if let made { return made }
      let workload = try InsertWorkload(shape, rows: rows)
      made = workload
      return workload
    }
  }
}
