import Buckia
import BuckiaStorage

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
  /// Whether the database was backed up in this round.
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
  /// Whether nothing was changed, because only a look was wanted.
  public internal(set) var isDryRun = false
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0
  /// In which state what is edited here was when the round looked at it.
  var localState: String?

  /// Whether there was nothing to do.
  public var isIdle: Bool {
    downloaded.isEmpty && !backedUp && uploaded.isEmpty && dropped.isEmpty && deleted.isEmpty && delivered.isEmpty
      && fetched.isEmpty && held.isEmpty && failures.isEmpty
      && applied?.diffs.contains { $0.state != .alreadyApplied } != true
  }
}
