/// A generator that always gives the same number: the worst and the best case of a random step.
struct ConstantGenerator: RandomNumberGenerator {
  let value: UInt64
  func next() -> UInt64 { value }
}
