import Foundation

/// How large a run of the suite is.
public struct Scale: Sendable {
  /// The size that the targets speak of.
  public static let fullRows = 1_000_000

  /// How many rows the large tables have; everything else follows.
  public let rows: Int
  /// How often each contender does its work; nil for what the benchmark says.
  public let rounds: Int?
  /// Where records go; nil when nobody wants them.
  public let records: String?

  /// What the environment says: `BUCKIA_BENCH_ROWS`, `BUCKIA_BENCH_ROUNDS`, `BUCKIA_BENCH_RECORDS`.
  public static var current: Scale {
    let environment = ProcessInfo.processInfo.environment
    func number(_ name: String) -> Int? { environment[name].flatMap(Int.init) }
    return Scale(
      rows: max(2_000, number("BUCKIA_BENCH_ROWS") ?? fullRows),
      rounds: number("BUCKIA_BENCH_ROUNDS").map { max(1, $0) },
      records: environment["BUCKIA_BENCH_RECORDS"].flatMap { $0.isEmpty ? nil : $0 })
  }
}
