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

  /// A copy to record changes on, which is not timed. It exists as long as this.
  func sourceConnection() throws -> SQLiteConnection {
    let source = try SQLiteConnection(opening: try folder.copy(of: path), as: .readWrite)
    try source.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
    return source
  }

  /// An implementation that works on the table `t` of a fresh copy.
  func implementation(
    _ name: ImplementationName, isSubject: Bool = false, _ work: @escaping (borrowing SQLiteConnection) throws -> Void
  ) -> Implementation {
    Implementation(name, isSubject: isSubject) { folder in
      ConnectionRun(try SQLiteConnection(opening: try folder.copy(of: self.path), as: .readWrite), work)
    }
  }
}
