import Buckia

/// How a round of sync works.
public struct SyncOptions: Sendable {
  /// How diffs are applied. Files stay or go as the round decides, whatever these say of it.
  public var apply = ApplyOptions()
  /// How many bytes of diffs that are not applied may lie on this device: who has sent them is known only when they are here. What does not fit
  /// stays in the storage until there is room, or a person lets it through.
  public var downloadBytes: Int64 = 4 << 30
  /// The ids of diffs that a person lets through, however much they bring.
  public var allowed: Set<KSUID> = []
  /// Whether the database is backed up. What was applied is dropped from the inbound folder of the storage only behind a backup, or at
  /// once where there is none.
  public var backsUp = true
  /// Whether original recordings are uploaded.
  public var uploadsOriginals = true
  /// Whether smaller versions are uploaded.
  public var uploadsReworked = true
  /// Only media whose path in its folder matches one of these patterns; empty for all. `*` stands for anything in a name, `**` across folders, `?`
  /// for one character.
  public var include: [String] = []
  /// No media whose path matches one of these patterns.
  public var exclude: [String] = []
  /// Patterns of media that are fetched from the storage where they are missing here, of their paths in the person's folder: `reworked/**`. Empty for none.
  public var fetches: [String] = []
  /// True to fetch also what this device had before: else it counts as removed by a person.
  public var fetchesRemoved = false
  /// Whether media are deleted from the storage and its mirrors that this device has uploaded and that are gone here.
  public var deletesOrphanedFiles = false
  /// How many files are transferred at once; nil for as many as the storage stands.
  public var concurrency: Int?
  /// Whether it is only looked what would be done.
  public var isDryRun = false
  /// Whether the storage is looked through for what should be there, instead of believing what was noted when it was uploaded.
  public var looksThroughStorage = false

  /// Makes options with the defaults.
  public init() {}
}
