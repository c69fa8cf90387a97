import Benchmark
import BenchmarkRecords
import BuckiaBenchmarks
import Foundation

/// Makes benchmarks of comparisons.
///
/// The library runs one benchmark after the other, minutes apart. Two figures of which a ratio is to be made must not lie
/// minutes apart. So one benchmark is one comparison, and one iteration of it is one round, in which every contender does
/// its work once, in an order that turns around. What the library measures itself (wall clock, CPU) is Buckia's part of
/// the round; the other contenders' times are metrics of their own.
public enum Suite {
  /// Registers comparisons.
  ///
  /// - Parameters:
  ///   - part: The part of the suite they belong to.
  ///   - rounds: How often each contender does its work, unless `BUCKIA_BENCH_ROUNDS` says otherwise.
  ///   - first: The place of the first in its part.
  ///   - comparisons: What to measure.
  public static func register(_ part: Part, rounds: Int = 5, from first: Int = 0, _ comparisons: [Comparison]) {
    let scale = Scale.current
    _ = terminal
    for (number, comparison) in comparisons.enumerated() {
      let metrics = Set(comparison.figures.flatMap { [$0.subject] + [$0.baseline].compactMap { $0 } })
        .map { (name: $0, metric: BenchmarkMetric.custom(metricName($0, comparison.unit), useScalingFactor: false)) }
      let configuration = Benchmark.Configuration(
        metrics: [.wallClock, .cpuTotal] + metrics.map(\.metric), warmupIterations: 0, maxDuration: .seconds(3_600),
        maxIterations: scale.rounds ?? rounds)
      let preparation = Preparation()
      Benchmark(comparison.title, configuration: configuration) { benchmark in
        do {
          let run = try preparation.run(of: comparison)
          try measureRound(run, benchmark)
          for (name, metric) in metrics {
            guard let value = run.result.series.first(where: { $0.name == name })?.values.last else { continue }
            benchmark.measurement(metric, Int((value * comparison.unit.scale).rounded()))
          }
          let record = Record(part: part, number: first + number, rows: scale.rows, comparison: run.result)
          if let folder = scale.records { try record.write(into: folder) }
        } catch {
          try note(error, of: comparison, in: part, scale, benchmark)
        }
      } setup: {
        say("\(comparison.title): preparing")
        preparation.begin(comparison)
      } teardown: {
        preparation.end()
      }
    }
  }

  /// Tells of a comparison that cannot be measured.
  ///
  /// The report names those of a run that is recorded, and fails. Without records the library has to.
  private static func note(
    _ error: any Error, of comparison: Comparison, in part: Part, _ scale: Scale, _ benchmark: Benchmark
  ) throws {
    guard let folder = scale.records else {
      benchmark.error(String(describing: error))
      return
    }
    say("  failed: \(error)")
    try Failure(part: part, title: comparison.title, reason: String(describing: error))
      .write(beside: folder, id: comparison.id)
  }

  private static func measureRound(_ run: ComparisonRun, _ benchmark: Benchmark) throws {
    var hasMeasured = false
    try run.round { contender, work in
      if contender.isSubject, !hasMeasured {
        hasMeasured = true
        benchmark.startMeasurement()
        try work()
        benchmark.stopMeasurement()
      } else {
        try work()
      }
    }
    let values = run.result.series.compactMap { series in
      series.values.last.map { "\(series.name) \(run.result.unit.text($0))" }
    }
    say("  round \(benchmark.currentIteration + 1): \(values.joined(separator: ", "))")
  }

  private static func metricName(_ name: ContenderName, _ unit: MeasuredUnit) -> String {
    unit == .seconds ? "\(name), µs" : "\(name), KiB"
  }

  /// Standard error as it was in the beginning: the library turns it off while a benchmark runs without its progress bars.
  private static let terminal = FileHandle(fileDescriptor: dup(2), closeOnDealloc: false)

  private static func say(_ text: String) { terminal.write(Data("\(text)\n".utf8)) }
}

extension MeasuredUnit {
  /// What one unit comes to in the library's whole numbers: microseconds, kibibytes.
  fileprivate var scale: Double { self == .seconds ? 1_000_000 : 1 / 1_024 }
}
