import SQLiteConnections

/// Keeps what SQLite would write into files of its own off the disk while encrypted files are applied: sorts, TEMP tables, and the pages
/// that savepoints bring back.
///
/// Such files have names that others can open as long as they exist, and their bytes stay on the disk when they are gone.
enum TemporaryFilesInMemory {
  /// Uses memory instead while `body` runs, if anything that is applied is encrypted.
  ///
  /// The sorts that build indexes anew stay within the memory limit: larger ones are not begun. The rest grows with the rows that are
  /// written: some 25 bytes for each that is found by its content.
  ///
  /// A connection of the app's with TEMP tables, which would be lost, or with an open transaction, in which SQLite does not change
  /// it, stays as the app has set it. What lies in its TEMP tables lies on disk by its own choice.
  ///
  /// - Throws: `SQLiteError` when the setting cannot be read or changed; what `body` throws.
  static func used<Result>(
    for listing: InboundListing, on connection: borrowing SQLiteConnection, _ body: () throws -> Result
  ) throws -> Result {
    guard !connection.isInTransaction, listing.items.contains(where: \.isEncrypted) else { return try body() }
    if let result = try connection.withTemporaryFilesInMemory(body) { return result }
    return try body()
  }
}
