/// Files that programs keep while they are at work, which are no objects: unfinished downloads and uploads of synchronizing programs,
/// locks, and what the system keeps beside files.
///
/// The names are those that the programs' documentation gives: Syncthing (`.syncthing.…`, `~syncthing~…`), Nextcloud and ownCloud (`….part`, `.~…`), browsers
/// (`….crdownload`, `….download`), Dropbox and rclone (`.dropbox…`, `….partial`), iCloud (`.….icloud`), and Buckia's own `.buckia-…`.
enum PartialFiles {
  /// The file that is locked while a condition is checked.
  static let lockName = ".buckia-lock"

  private static let endings = [".part", ".partial", ".crdownload", ".download", ".tmp", ".!sync", ".filepart"]

  /// True if a file of that name is no object.
  static func include(_ name: String) -> Bool {
    if name.hasPrefix(".") || name.hasPrefix("~syncthing~") || name.hasPrefix("~$") { return true }
    let lowered = name.lowercased()
    return endings.contains { lowered.hasSuffix($0) } || areSystems(name)
  }

  private static let systems = ["desktop.ini", "thumbs.db", ".ds_store", ".localized", ".stfolder", ".stignore"]

  /// True if a program or a system keeps a file of that name for itself, and no person misses it elsewhere.
  static func areSystems(_ name: String) -> Bool {
    name.hasPrefix(".buckia-") || name.hasPrefix("._") || systems.contains(name.lowercased())
  }
}
