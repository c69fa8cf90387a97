import BuckiaStorage

/// What the parts of a person's folder are called, and at which of two places of this device it is.
///
/// ```
/// <user-id>/backup.sqlite     a consistent copy of the local database
/// <user-id>/originals/        original recordings
/// <user-id>/reworked/         smaller versions for viewing
/// <user-id>/inbound/          diff files from others
/// ```
public struct FolderStructureConfiguration: Sendable, Equatable {
  /// One of the two places.
  public enum Place: String, Sendable, CaseIterable {
    /// The app's own folder.
    case main
    /// Another one: a larger volume, or a folder that the person can look into.
    case other
  }

  /// The folder of this device that holds the person's folder.
  public var main: String
  /// The other place; nil where there is none.
  public var other: String?
  /// The name of the backup.
  public var backup = "backup.sqlite"
  /// The name of the folder for original recordings.
  public var originals = "originals"
  /// The name of the folder for smaller versions.
  public var reworked = "reworked"
  /// The name of the folder for diff files from others.
  public var inbound = "inbound"

  /// Names the places.
  public init(main: String, other: String? = nil) {
    self.main = main
    self.other = other
  }

  func path(of place: Place) -> String? { place == .main ? main : other }
}
