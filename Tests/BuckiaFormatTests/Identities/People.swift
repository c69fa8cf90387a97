import BuckiaFormat
import TestSupport

/// Creates a person with keys derived from a number.
func person(_ name: String, _ seed: UInt64 = 1, at time: Int64 = 1_700_000_000_000) throws -> Identity {
  var generator = SeededGenerator(seed: seed)
  return try Identity(named: name, at: time, using: &generator)
}

/// The person's next keys.
func rotated(_ identity: Identity, _ seed: UInt64 = 99) throws -> (identity: Identity, rotation: KeyRotation) {
  var generator = SeededGenerator(seed: seed)
  return try identity.rotated(at: 1_700_000_100_000, using: &generator)
}

/// The code of the `IdentityError` that a closure throws; nil if it throws none.
func code(of body: () throws -> Void) -> IdentityError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? IdentityError)?.code
  }
}
