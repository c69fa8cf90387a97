import SQLiteConnections

/// A database file that every run gets a copy of.
final class OriginalDatabase {
  /// The file, closed and complete.
  let path: String
  private let folder: ScratchFolder

  /// Makes a database with rows numbered from 1.
  ///
  /// - Throws: `SQLiteError`.
  init(_ shape: TableShape, rows: Int, in folder: ScratchFolder) throws {
    self.folder = folder
    path = folder.newFile()
    try shape.makeDatabase(at: path, rows: rows)
  }

  /// A copy for the author of changes, whose speed is nobody's concern. It lives as long as this.
  func authorsCopy() throws -> SQLiteConnection {
    let author = try SQLiteConnection(opening: try folder.copy(of: path), as: .readWrite)
    try author.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
    return author
  }

  /// A contender that works on the table `t` of a fresh copy.
  func contender(
    _ name: ContenderName, isSubject: Bool = false, _ work: @escaping (borrowing SQLiteConnection) throws -> Void
  ) -> Contender {
    Contender(name, isSubject: isSubject) { folder in
      ConnectionTrial(try SQLiteConnection(opening: try folder.copy(of: self.path), as: .readWrite), work)
    }
  }
}
