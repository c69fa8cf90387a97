/// One run of an implementation, with its input in place.
package protocol PreparedRun: AnyObject {
  /// Does the work.
  ///
  /// - Returns: The measured value, when it is something else than the time until this returns; else nil.
  func run() throws -> Double?

  /// A hash of the rows that the work produced; nil for work that produces none.
  func content() throws -> UInt64?
}

/// A run made of closures.
package final class ClosureRun: PreparedRun {
  private let work: () throws -> Double?
  private let result: () throws -> UInt64?

  /// Makes a run.
  ///
  /// - Parameters:
  ///   - content: See ``PreparedRun/content()``.
  ///   - work: See ``PreparedRun/run()``.
  package init(content: @escaping () throws -> UInt64? = { nil }, _ work: @escaping () throws -> Double?) {
    self.work = work
    result = content
  }

  package func run() throws -> Double? { try work() }

  package func content() throws -> UInt64? { try result() }
}
