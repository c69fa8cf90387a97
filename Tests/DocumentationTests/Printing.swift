import TestSupport

/// What the samples print, for the test that runs them.
enum Printed {
  @TaskLocal static var lines: Recorded<[String]>?

  /// Runs a sample.
  ///
  /// - Returns: The lines that it has printed.
  static func lines(of sample: () throws -> Void) throws -> [String] {
    let recorded = Recorded<[String]>([])
    try $lines.withValue(recorded) { try sample() }
    return recorded.value
  }
}

/// Takes the place of Swift's function in the samples, which would write between the lines of the test's own output.
func print(_ items: Any..., separator: String = " ", terminator: String = "\n") {
  Printed.lines?.value.append(items.map { "\($0)" }.joined(separator: separator))
}
