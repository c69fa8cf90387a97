import SQLiteConnections

/// The version for bug reports.
package enum Version {
  /// The version of Buckia.
  package static let number = "0.1.0"
  /// The version of SQLite that it is linked with.
  package static var sqlite: String { SQLiteConnection.libraryVersion }
  /// The version of zstd that it is linked with.
  package static var zstd: String { DiffFileWriter.zstdVersion }
  /// All of them, as `--version` prints them.
  package static var text: String { "buckia \(number) (SQLite \(sqlite), zstd \(zstd))" }
}
