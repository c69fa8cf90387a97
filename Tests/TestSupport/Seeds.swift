import Foundation

/// Random numbers that a failing test can repeat: a counter with a mixed output (SplitMix64).
///
/// See Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
public struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  /// Creates a generator.
  public init(seed: UInt64) { state = seed }

  /// The next number.
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// True in one of the given number of cases.
  public mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

  /// One of several texts.
  public mutating func pick(_ choices: [String]) -> String {
    choices.isEmpty ? "" : choices[Int.random(in: 0..<choices.count, using: &self)]
  }

  /// Several texts in a random order.
  public mutating func some(_ count: Int, of choices: [String]) -> [String] {
    Array(choices.shuffled(using: &self).prefix(count))
  }
}

/// The seeds for testing a property.
///
/// `BUCKIA_SEED=77` repeats one, `BUCKIA_SEEDS=20000` tries more than usual, `BUCKIA_SEED_FROM=100000` others.
public enum Seeds {
  /// The parts of a long range, which run in parallel.
  public static let shards = 0..<4

  /// The line that repeats a failed seed.
  public static func replay(_ seed: UInt64, _ test: String = #function) -> String {
    "to repeat: BUCKIA_SEED=\(seed) swift test --filter \(test.prefix { $0 != "(" })"
  }

  /// The seeds to be tried.
  public static func range(_ usual: Int) -> Range<UInt64> {
    let settings = ProcessInfo.processInfo.environment
    if let one = settings["BUCKIA_SEED"].flatMap(UInt64.init), one < .max { return one..<(one + 1) }
    let count = settings["BUCKIA_SEEDS"].flatMap(UInt64.init) ?? UInt64(usual)
    let start = settings["BUCKIA_SEED_FROM"].flatMap(UInt64.init) ?? 0
    return start..<(start + count)
  }

  /// Thrown by a property that does not apply to the case of a seed.
  public struct Unsuitable: Error {
    /// Creates the error.
    public init() {}
  }

  /// Tests a property with one shard's part of a range.
  ///
  /// - Throws: The error of `body`, with the line that repeats it; or an error if hardly any case was suitable.
  public static func tryEach(
    _ usual: Int, shard: Int, _ test: String = #function, _ body: (UInt64) throws -> Void
  ) throws {
    var cases = 0
    var unsuitable = 0
    for seed in range(usual, shard: shard) {
      cases += 1
      do {
        try body(seed)
      } catch is Unsuitable {
        unsuitable += 1
      } catch {
        throw Failure(description: "\(replay(seed, test)): \(error)")
      }
    }
    guard cases < 100 || unsuitable < cases * 9 / 10 else {
      throw Failure(description: "\(test): \(unsuitable) of \(cases) cases were unsuitable, so little was tried")
    }
  }

  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// One shard's part of a range.
  public static func range(_ usual: Int, shard: Int) -> StrideTo<UInt64> {
    let all = range(usual)
    return stride(from: all.lowerBound + UInt64(shard), to: all.upperBound, by: shards.count)
  }
}
