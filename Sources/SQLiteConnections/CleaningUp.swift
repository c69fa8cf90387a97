/// Runs `body` and then `cleanUp`, also when `body` fails.
///
/// - Throws: The first error: what `body` throws, or else what `cleanUp` throws.
package func cleaningUp<Value>(after body: () throws -> Value, by cleanUp: () throws -> Void) throws -> Value {
  let value: Value
  do { value = try body() } catch { throw cleaningUp(after: error, by: cleanUp) }
  try cleanUp()
  return value
}

/// Runs `cleanUp` after an error.
///
/// - Returns: The error. It says what went wrong, also where `cleanUp` fails because of it.
package func cleaningUp(after error: any Error, by cleanUp: () throws -> Void) -> any Error {
  _ = Result(catching: cleanUp)
  return error
}
