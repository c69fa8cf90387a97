/// A generator that always returns the same number.
struct ConstantGenerator: RandomNumberGenerator {
  let value: UInt64
  func next() -> UInt64 { value }
}
