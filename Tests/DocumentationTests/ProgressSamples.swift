import Buckia
import TestSupport
import Testing

/// Applies files while a view shows how far it is.
private func applyInBackground(
  database: DatabaseManager, inbound: String, show: @escaping @Sendable (Double) -> Void
) async throws -> ApplyReport {
  let report = try await database.processInboundChanges(
    [inbound],
    progress: { progress in
      show(Double(progress.bytes) / Double(max(1, progress.byteCount)))
    })
  return report
}

/// Keeps what was done before the work stopped.
private func applyUntilStopped(database: DatabaseManager, inbound: String) async throws {
  do {
    try await database.processInboundChanges([inbound])
  } catch let interruption as ApplyInterruption {
    print(interruption.report.applied.count, "files were applied before:", interruption.cause)
  } catch is CancellationError {
    print("cancelled before the first file was done")
  }
}

@Suite("Samples about progress and cancellation")
struct ProgressSamples {
  @Test("Progress is reported as a part of all bytes")
  func progress() async throws {
    let files = try SampleFiles()
    try files.deliver()
    let shown = Recorded<[Double]>([])
    let report = try await applyInBackground(
      database: files.database, inbound: files.inbound, show: { shown.value.append($0) })
    #expect(report.applied.count == 1)
    #expect(!shown.value.isEmpty)
    #expect(shown.value.allSatisfy { (0...1).contains($0) })
  }

  @Test("A cancelled task stops")
  func cancellation() async throws {
    let files = try SampleFiles()
    try files.deliver()
    let (database, inbound) = (files.database, files.inbound)
    let printed = Recorded<[String]>([])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await Printed.$lines.withValue(printed) { try await applyUntilStopped(database: database, inbound: inbound) }
    }
    try await task.value
    #expect(printed.value == ["cancelled before the first file was done"])
    #expect(try files.titles() == ["Boat", "Radio"])
  }
}
