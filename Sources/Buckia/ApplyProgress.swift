/// How far applying has come.
public struct ApplyProgress: Sendable, Equatable {
  /// What is being done with a file.
  public enum Activity: String, Sendable, CaseIterable {
    /// It is read, unpacked and checked.
    case verifying
    /// Its changes are sorted and written.
    case applying
  }

  /// What is being done.
  public internal(set) var activity = Activity.verifying
  /// The file with which it is done.
  public internal(set) var path = ""
  /// How many files are done.
  public internal(set) var files = 0
  /// How many files there are.
  public internal(set) var fileCount = 0
  /// How many changes of the present file have been applied. Told every few thousand changes.
  public internal(set) var rows = 0
  /// How many bytes the files that are done have, and the present one as far as its changes have been applied.
  public internal(set) var bytes: Int64 = 0
  /// How many bytes all files have.
  public internal(set) var byteCount: Int64 = 0
}

/// Is told how far applying has come: before each file, every few thousand changes, and now and then, with nothing new, while
/// a large file is verified or its changes are sorted. May throw to stop; the files that are done stay applied.
public typealias ApplyProgressHandler = (ApplyProgress) throws -> Void
