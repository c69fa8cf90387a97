import Buckia
import BuckiaStorage
import NIOConcurrencyHelpers
import Observation

/// The progress of a round of sync.
public struct SyncProgress: Sendable, Equatable {
  /// The steps of a round, in their order.
  public enum Step: String, Codable, Sendable, CaseIterable {
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

  /// The present step.
  public var step: Step
  /// The number of finished files of the step.
  public var files = 0
  /// The number of files of the step.
  public var fileCount = 0
  /// The number of finished bytes of the step.
  public var bytes: Int64 = 0
  /// The number of bytes of the step.
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

/// The state of rounds, for a user interface that observes it.
@MainActor @Observable
public final class SyncState {
  /// The progress of the present round; nil before the first.
  public internal(set) var progress: SyncProgress?
  /// True if a round is under way.
  public internal(set) var isRunning = false
  /// The result of the last round; nil before the end of the first, and if it failed.
  public internal(set) var result: SyncResult?
  /// The error message of the last round; nil if it succeeded.
  public internal(set) var failure: String?

  /// Observes nothing yet.
  public init() {}
}

/// The result of a round of sync.
public struct SyncResult: Hashable, Codable, Sendable {
  /// One file that went somewhere.
  public struct Transfer: Hashable, Codable, Sendable {
    /// The object.
    public let path: RemotePath
    /// Its size in bytes.
    public let byteCount: Int64
    /// The storage, by its address.
    public let storage: String
  }

  /// One thing that did not work out, and did not stop the rest.
  public struct Failure: Hashable, Codable, Sendable {
    /// The step that failed.
    public let step: SyncProgress.Step
    /// The object or file; nil if it is about none.
    public let subject: String?
    /// The kind of error: a word that stays.
    public let code: String
    /// Why, in a sentence.
    public let message: String
    /// The file or object that the error is about.
    public let path: String?

    init(step: SyncProgress.Step, subject: String?, error: any Error) {
      self.step = step
      self.subject = subject
      switch BuckiaError.wrapped(error) {
      case let error as BuckiaError:
        (code, message, path) = (error.code.rawValue, error.description, error.context.path)
      case let error as StorageError: (code, message, path) = (error.code.rawValue, error.description, error.path?.text)
      default: (code, message, path) = ("failed", String(describing: error), nil)
      }
    }
  }

  /// A diff above a limit, which a person has to approve.
  public struct Held: Hashable, Codable, Sendable {
    /// Its id, by which it is let through: ``SyncOptions/allowed``.
    public let id: KSUID
    /// The file's name.
    public let file: String
    /// Its size in bytes.
    public let byteCount: Int64
    /// Why it is held.
    public let reason: String
  }

  /// The storage that was used: that of the fallback if the first could not be reached.
  public internal(set) var storage = ""
  /// The reason for using the fallback; nil if it was not used.
  public internal(set) var fallbackReason: String?
  /// The number of diff files and other objects in the inbound folder.
  public internal(set) var inboundCount = 0
  /// The downloaded files.
  public internal(set) var downloaded: [Transfer] = []
  /// The report of applying; nil without diffs, and in a dry run.
  public internal(set) var applied: ApplyReport?
  /// Diffs that wait for a person's approval.
  public internal(set) var held: [Held] = []
  /// The uploaded files: backups and media.
  public internal(set) var uploaded: [Transfer] = []
  /// True if the database was backed up in this round.
  public internal(set) var backedUp = false
  /// The objects that were removed from the inbound folder, because the database has them now.
  public internal(set) var dropped: [RemotePath] = []
  /// Media that were deleted from the storage, because they were deleted here.
  public internal(set) var deleted: [RemotePath] = []
  /// Delivered diffs.
  public internal(set) var delivered: [Transfer] = []
  /// Media that were fetched from the storage.
  public internal(set) var fetched: [Transfer] = []
  /// The number of media that the storage had already.
  public internal(set) var unchangedCount = 0
  /// What did not work out.
  public internal(set) var failures: [Failure] = []
  /// True if the round ended after applying, because the storage broke down or this device had no room: nothing was uploaded or deleted then.
  public internal(set) var isCutShort = false
  /// Warnings.
  public internal(set) var notes: [String] = []
  /// True if nothing was changed, because only a look was wanted.
  public internal(set) var isDryRun = false
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0
  /// The state of locally edited files when the round read it.
  var localState: String?

  /// True if there was nothing to do.
  public var isIdle: Bool {
    downloaded.isEmpty && !backedUp && uploaded.isEmpty && dropped.isEmpty && deleted.isEmpty && delivered.isEmpty
      && fetched.isEmpty && held.isEmpty && failures.isEmpty
      && applied?.diffs.contains { $0.state != .alreadyApplied } != true
  }
}

extension SyncResult.Transfer {
  /// An object that came from a storage.
  init(_ object: StoredObject, in storage: any StorageProvider) {
    self.init(path: object.path, byteCount: object.byteCount, storage: storage.name)
  }
}

/// The observers of progress.
final class ProgressObservers: Sendable {
  private let continuations = NIOLockedValueBox<[Int: AsyncStream<SyncProgress>.Continuation]>([:])

  deinit {
    for continuation in continuations.withLockedValue({ $0 }).values { continuation.finish() }
  }

  func stream() -> AsyncStream<SyncProgress> {
    // A slow reader gets the newest state, and skips earlier ones.
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let number = continuations.withLockedValue { known in
        let number = (known.keys.max() ?? 0) + 1
        known[number] = continuation
        return number
      }
      continuation.onTermination = { [weak self] _ in
        self?.continuations.withLockedValue { known in known[number] = nil }
      }
    }
  }

  func send(_ progress: SyncProgress) {
    for continuation in continuations.withLockedValue({ $0 }).values { continuation.yield(progress) }
  }
}
