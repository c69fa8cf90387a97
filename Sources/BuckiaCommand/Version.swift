import BuckiaDiffFiles
import SQLiteConnections

/// What `--version` prints.
enum Version {
  /// This program's version.
  static let number = "0.1.0"

  /// It, and the versions of the libraries it runs on: what a bug report should say.
  static var text: String {
    "buckia \(number) (SQLite \(SQLiteConnection.libraryVersion), zstd \(DiffFileWriter.zstdVersion))"
  }
}
