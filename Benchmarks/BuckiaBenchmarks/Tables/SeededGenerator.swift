/// Pseudo-random numbers, the same in every run: [SplitMix64](https://prng.di.unimi.it/splitmix64.c).
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Starts at a seed.
  package init(seed: UInt64) { state = seed }

  /// The next number.
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// Distinct numbers from a range, in random order; the whole range if it has too few.
  package mutating func distinct(_ count: Int, from range: ClosedRange<Int>) -> [Int] {
    guard count < range.count else { return Array(range) }
    var chosen: Set<Int> = []
    var numbers: [Int] = []
    while numbers.count < count {
      let number = Int.random(in: range, using: &self)
      if chosen.insert(number).inserted { numbers.append(number) }
    }
    return numbers
  }
}
