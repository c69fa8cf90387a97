/// The randomness of a simulation: the same seed gives the same numbers, on every machine.
///
/// This is SplitMix64; see Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
public struct SimulationRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Begins with a seed.
  public init(seed: UInt64) { state = seed }

  /// The next number.
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// True with a probability from 0 to 1.
  public mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }

  /// One of several; nil when there is none.
  public mutating func pick<Element>(_ choices: some RandomAccessCollection<Element>) -> Element? {
    choices.randomElement(using: &self)
  }

  /// A whole number in a range.
  public mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }
}
