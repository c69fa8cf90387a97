import Observation

/// How far a round of sync has come.
public struct SyncProgress: Sendable, Equatable {
  /// The steps of a round, in their order.
  public enum Step: String, Sendable, CaseIterable {
    case listing
    case downloading
    case applying
    case backingUp = "backing-up"
    case dropping
    case uploading
    case delivering
    case fetching
    case done
  }

  /// What is being done.
  public var step: Step
  /// How many files of the step are done.
  public var files = 0
  /// How many files the step has.
  public var fileCount = 0
  /// How many bytes of the step are done.
  public var bytes: Int64 = 0
  /// How many bytes the step has.
  public var byteCount: Int64 = 0
  /// The file that was worked on last.
  public var path: String?

  /// Counts a file as done.
  mutating func add(_ path: String, byteCount: Int64) {
    files += 1
    bytes += byteCount
    self.path = path
  }
}

/// How far a round has come, for a user interface that observes it.
@MainActor @Observable
public final class SyncState {
  /// How far the present round has come; nil before the first.
  public internal(set) var progress: SyncProgress?
  /// Whether a round is under way.
  public internal(set) var isRunning = false
  /// What the last round did; nil before the end of the first, and where it failed.
  public internal(set) var result: SyncResult?
  /// Why the last round failed, in words; nil where it did not.
  public internal(set) var failure: String?

  /// Observes nothing yet.
  public init() {}
}
