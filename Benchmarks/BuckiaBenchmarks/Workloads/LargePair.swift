import BuckiaBytes
import Buckia
import SQLiteConnections

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Two large databases with long rows, so that reading the files is most of the work. A million rows make 2 GiB.
package struct LargePair {
  /// About how many bytes of the file a row takes: two rows share a page, and every 40th row has one of its own.
  package static let rowBytes = 2_150

  /// The older database.
  package let older: String
  /// The newer database.
  package let newer: String
  /// How many rows were changed.
  package let changed: Int
  /// The size of the databases, for people.
  package let size: String

  /// How many bytes both files take.
  package static func bytes(rows: Int) -> Int { 2 * rows * rowBytes }

  /// Makes a database and a copy in which some rows were changed at random; none for nil.
  ///
  /// - Parameters:
  ///   - rows: How many rows.
  ///   - changed: How many of them have another text in the copy.
  ///   - folder: Where.
  /// - Throws: `SQLiteError`; `BuckiaError` with `unsuitable` when there is no room.
  package init(rows: Int, changed: ChangedRows?, in folder: ScratchFolder) throws {
    try folder.requireRoom(bytes: Self.bytes(rows: rows))
    older = folder.newFile()
    newer = folder.newFile()
    try Self.makeDatabase(at: older, rows: rows)
    try FileManager.default.copyItem(atPath: older, toPath: newer)
    self.changed = changed?.count(of: rows) ?? 0
    if let changed { try Self.change(changed.count(of: rows), of: rows, in: newer) }
    let bytes = FileSystem.byteCount(of: newer)
    size =
      "\(Quantity.grouped(rows)) rows, \(Quantity.size(Int(bytes))) each, "
      + (changed == nil ? "equal" : "\(Quantity.grouped(self.changed)) rows changed")
  }

  private static func makeDatabase(at path: String, rows: Int) throws {
    let connection = try SQLiteConnection(opening: path, as: .create)
    try connection.execute(
      "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; CREATE TABLE large(id INTEGER PRIMARY KEY, n INT, text BLOB)"
    )
    // Texts are slices of this at pseudo-random offsets.
    var random = SeededGenerator(seed: 5)
    let pool = (0..<1 << 17).flatMap { _ in withUnsafeBytes(of: random.next(), Array.init) }
    let insert = try connection.prepare(
      """
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
      INSERT INTO large
        SELECT i, i % 1000, substr(?1, 1 + i * 2654435761 % 1000000, CASE i % 40 WHEN 0 THEN 3900 ELSE 1900 + i % 120 END) FROM n
      """)
    try insert.bind(pool, at: 0)
    try insert.bind(Int64(rows), at: 1)
    try insert.run()
  }

  private static func change(_ count: Int, of rows: Int, in path: String) throws {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; BEGIN")
    let update = try connection.prepare("UPDATE large SET n = n + 1 WHERE id = ?1", isPersistent: true)
    var random = SeededGenerator(seed: 6)
    for row in random.distinct(count, from: 1...rows) {
      try update.bind(Int64(row), at: 0)
      try update.run()
    }
    try connection.execute("COMMIT")
  }

  /// Reads both files, so that the system's page cache holds them.
  package func warm() throws {
    var piece = [UInt8](repeating: 0, count: 4 << 20)
    for path in [older, newer] {
      let file = open(path, O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { throw CocoaError(.fileReadUnknown) }
      defer { close(file) }
      while read(file, &piece, piece.count) > 0 {}
    }
  }
}

extension ScratchFolder {
  /// Requires free space on the volume.
  ///
  /// - Throws: `BuckiaError` with `unsuitable`.
  package func requireRoom(bytes: Int) throws {
    var status = statvfs()
    let free = statvfs(path, &status) == 0 ? Int(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize)) : .max
    guard free >= bytes else {
      throw BuckiaError(
        .unsuitable,
        "\(path) has \(Quantity.size(free)) left, and \(Quantity.size(Int(bytes))) are needed; TMPDIR chooses another folder"
      )
    }
  }
}
