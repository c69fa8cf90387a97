import BuckiaApply
import BuckiaLedger

extension DatabaseManager {
  /// Applies diff files, raw changesets and whole inbound folders, on a thread of its own.
  ///
  /// It does what the synchronous call of the same name does. When the task is cancelled, the work stops before the next file, or
  /// within a few thousand changes of the present one, which is then taken back with the files that share its transaction.
  /// A borrowed database belongs to its thread: use the synchronous call there.
  ///
  /// ```swift
  /// let report = try await database.processInboundChanges(["inbound"], progress: { print($0.files, "of", $0.fileCount) })
  /// ```
  ///
  /// - Parameters:
  ///   - paths: Files and folders.
  ///   - options: How to apply.
  ///   - resolver: Is asked about each conflict, on the thread that does the work.
  ///   - progress: Is told how far the work has come, on the same thread. May throw to stop it.
  /// - Returns: What became of each file.
  /// - Throws: As the synchronous call; `CancellationError`, or an `ApplyInterruption` with it as the cause.
  @discardableResult
  public func processInboundChanges(
    _ paths: [String], options: ApplyOptions = ApplyOptions(), resolver: ConflictResolver? = nil,
    progress: @escaping @Sendable (ApplyProgress) throws -> Void = { _ in }
  ) async throws -> ApplyReport {
    try await CancellationFlag.onThreadOfItsOwn { cancellation in
      try processInboundChanges(
        paths, options: options, resolver: resolver,
        progress: {
          try cancellation.check()
          try progress($0)
        })
    }
  }
}
