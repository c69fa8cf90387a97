import Buckia
import BuckiaStorage
import NIOConcurrencyHelpers
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
  /// True if a round is under way.
  public internal(set) var isRunning = false
  /// What the last round did; nil before the end of the first, and where it failed.
  public internal(set) var result: SyncResult?
  /// Why the last round failed, in words; nil where it did not.
  public internal(set) var failure: String?

  /// Observes nothing yet.
  public init() {}
}

/// What a round of sync did.
public struct SyncResult: Sendable {
  /// One file that went somewhere.
  public struct Transfer: Sendable, Equatable {
    /// The object.
    public let path: RemotePath
    /// Its size in bytes.
    public let byteCount: Int64
    /// The storage, by its address.
    public let storage: String
  }

  /// One thing that did not work out, and did not stop the rest.
  public struct Failure: Sendable {
    /// What was to be done.
    public let step: SyncProgress.Step
    /// The object or file, where it is about one.
    public let subject: String?
    /// Why.
    public let error: any Error
  }

  /// A diff that brings more than may come without a person who lets it through.
  public struct Held: Sendable, Equatable {
    /// Its id, by which it is let through: ``SyncOptions/allowed``.
    public let id: KSUID
    /// The file's name.
    public let file: String
    /// Its size in bytes.
    public let byteCount: Int64
    /// Why it is held.
    public let reason: String
  }

  /// The storage that was used: the fallback's address where the first could not be reached.
  public internal(set) var storage = ""
  /// Why the fallback was used; nil where it was not.
  public internal(set) var fallbackReason: String?
  /// How many diff files and other objects were in the inbound folder.
  public internal(set) var inboundCount = 0
  /// What was downloaded.
  public internal(set) var downloaded: [Transfer] = []
  /// What became of the diffs; nil where none were there, and in a dry run.
  public internal(set) var applied: ApplyReport?
  /// Diffs that wait for a person because of what they bring.
  public internal(set) var held: [Held] = []
  /// What was uploaded: backups and media.
  public internal(set) var uploaded: [Transfer] = []
  /// True if the database was backed up in this round.
  public internal(set) var backedUp = false
  /// What was dropped from the inbound folder, because it is in the database now.
  public internal(set) var dropped: [RemotePath] = []
  /// Media that were deleted from the storage, because they are gone here.
  public internal(set) var deleted: [RemotePath] = []
  /// Diffs that were brought to others.
  public internal(set) var delivered: [Transfer] = []
  /// Media that were fetched from the storage.
  public internal(set) var fetched: [Transfer] = []
  /// How many media were there already.
  public internal(set) var unchangedCount = 0
  /// What did not work out.
  public internal(set) var failures: [Failure] = []
  /// True if the round ended after applying, because the storage broke down or this device had no room: nothing was uploaded or deleted then.
  public internal(set) var isCutShort = false
  /// What is worth knowing.
  public internal(set) var notes: [String] = []
  /// True if nothing was changed, because only a look was wanted.
  public internal(set) var isDryRun = false
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0
  /// In which state what is edited here was when the round looked at it.
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

/// Those who want to know how far rounds have come.
final class ProgressObservers: Sendable {
  private let continuations = NIOLockedValueBox<[Int: AsyncStream<SyncProgress>.Continuation]>([:])

  deinit {
    for continuation in continuations.withLockedValue({ $0 }).values { continuation.finish() }
  }

  func stream() -> AsyncStream<SyncProgress> {
    // Whoever is slow sees the newest state, and not each one before.
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
