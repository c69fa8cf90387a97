import BuckiaBenchmarks
import BuckiaBytes
import BuckiaFormat
import Foundation
import SQLiteChangesets
import SQLiteSchemas

/// A changeset that is larger than memory, written piece by piece.
struct LargeChangeset {
  /// The kind of file.
  enum Form: String, CaseIterable {
    case diffFile = "diff file"
    case rawChangeset = "raw changeset"
  }

  /// How long the text of a row is: a million rows make 3 GiB.
  static let textBytes = 3_208
  /// The size of a row in the changeset: its text and the overhead.
  static let rowBytes = textBytes + 14
  static let definition = "CREATE TABLE large(id INTEGER PRIMARY KEY, text TEXT)"

  let rows: Int

  /// Makes a file in a folder.
  ///
  /// - Returns: The file, and how many bytes the changeset in it has.
  func write(_ form: Form, into folder: ScratchFolder) throws -> (path: String, changeset: Int) {
    let id = KSUID(timestamp: 1, payloadHigh: 1, payloadLow: 1)
    // Beyond 1 MiB it is kept in a temporary file.
    let spool = TemporaryBuffer(folder: folder.path, memoryLimit: 1 << 20)
    try fill(spool)
    let path: String
    switch form {
    case .rawChangeset:
      path = folder.file(DiffFileName.changeset(id))
      _ = try RawChangeset.write(spool, to: path, replacing: false)
    case .diffFile:
      path = folder.file(DiffFileName.diff(id))
      let table = TableDefinition(
        name: "large",
        columns: [
          ColumnDefinition(name: "id", declaredType: "INTEGER"), ColumnDefinition(name: "text", declaredType: "TEXT"),
        ], primaryKey: [0])
      let draft = DiffFileDraft(
        manifest: Manifest(id: id), schema: .included([table]), tablesInKeyOrder: [TableName("large")])
      try DiffFileWriter().write(draft, changeset: spool, to: path)
    }
    return (path, spool.count)
  }

  private func fill(_ spool: TemporaryBuffer) throws {
    // Texts are slices of this at random offsets. It is larger than zstd's window, so that it does not compress.
    var random = SeededGenerator(seed: 4)
    let digits = Array("0123456789abcdef".utf8)
    var pool: [UInt8] = []
    pool.reserveCapacity(16 << 20)
    while pool.count < 16 << 20 {
      var number = random.next()
      for _ in 0..<16 {
        pool.append(digits[Int(number & 15)])
        number >>= 4
      }
    }
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "large", keyFlags: [1, 0]))
    for row in 0..<rows {
      writer.beginChange(.insert)
      writer.append(integer: Int64(row + 1))
      let start = Int.random(in: 0...(pool.count - Self.textBytes), using: &random)
      pool.withUnsafeBytes {
        writer.append(.text, UnsafeRawBufferPointer(rebasing: $0[start..<(start + Self.textBytes)]))
      }
      if writer.count > 1 << 20 || row == rows - 1 {
        try spool.write(writer.bytes)
        writer.removeAll()
      }
    }
  }
}
