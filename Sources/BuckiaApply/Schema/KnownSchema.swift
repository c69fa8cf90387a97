import SQLiteSchemas
import SQLiteConnections

/// What is known of the schema of a database, and whether it still holds: the one place that reads it while files are applied.
///
/// A schema may have ten thousand tables, and a folder ten thousand files. So what has been read is kept from file to file, and
/// from transaction to transaction, under the version that SQLite counts up with each change, whoever makes it
/// (<https://sqlite.org/pragma.html#pragma_schema_version>). Under another version nothing of it is used. Only the steps of plans
/// are followed, by reading what they have changed.
///
/// A change that is rolled back takes its version back, too, and the next one gets the same. So whoever rolls back says to where.
final class KnownSchema {
  private let connection: SQLiteConnection
  /// The version that all of this was read under, as far as any was; nil when nothing is known.
  private(set) var version: Int64?
  private var knownTables: SchemaReader?
  private var knownReferences: SchemaReferences?
  private var knownIndexes: IndexSchema?
  private var knownHasVirtualTables: Bool?

  /// - Parameter connection: The connection, which must outlive this.
  init(_ connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Forgets all that does not hold any more.
  ///
  /// - Returns: Whether the schema is another one than before.
  /// - Throws: `SQLiteError` when its version cannot be read.
  func refresh() throws -> Bool {
    let present = try presentVersion()
    guard present != version else { return false }
    forget()
    version = present
    return true
  }

  private func presentVersion() throws -> Int64 { try connection.cachedInteger("PRAGMA main.schema_version") ?? 0 }

  /// Forgets everything.
  func forget() {
    version = nil
    knownTables = nil
    knownReferences = nil
    knownIndexes = nil
    knownHasVirtualTables = nil
  }

  /// Says that all that was done under later versions than this has been rolled back.
  ///
  /// Versions only grow in a transaction: what is known under the same version has been true all the while.
  func rollBack(to earlier: Int64?) {
    guard version != earlier else { return }
    forget()
    version = earlier
  }

  /// Keeps what was read under an earlier version, since nothing of it has changed in between.
  func follow(from earlier: Int64?) throws {
    guard version == earlier else { return forget() }
    version = try presentVersion()
  }

  // MARK: What is known, as of the last refresh

  /// The tables and views.
  func tables() throws -> SchemaReader {
    if let knownTables { return knownTables }
    let read = try SchemaReader(connection, keepsDefinitions: true)
    knownTables = read
    return read
  }

  /// The foreign keys.
  func references() throws -> SchemaReferences {
    if let knownReferences { return knownReferences }
    let read = try SchemaReferences(connection)
    knownReferences = read
    return read
  }

  /// Virtual tables, views and triggers.
  func indexes() throws -> IndexSchema {
    if let knownIndexes { return knownIndexes }
    let read = try IndexSchema(connection)
    knownIndexes = read
    return read
  }

  /// Whether there is any virtual table; most databases have none, and then there are no indexes to keep.
  func hasVirtualTables() throws -> Bool {
    if let knownHasVirtualTables { return knownHasVirtualTables }
    let read = try IndexSchema.hasVirtualTables(on: connection)
    knownHasVirtualTables = read
    return read
  }

  // MARK: Changing it

  /// Carries out a step of a plan, right after ``refresh()`` and inside the same transaction, so that nobody else changes anything.
  ///
  /// - Throws: As `SchemaStep.carryOut(on:)`; `SQLiteError`. Nothing is known then.
  func carryOut(_ step: SchemaStep) throws {
    do {
      let isFollowed = try tables().carryOut(step)
      guard isFollowed else { return forget() }
      if case .createTable(let table, _) = step {
        let name = TableName(table.name)
        if !table.foreignKeys.isEmpty { try knownReferences?.add(of: name, on: connection) }
        knownIndexes?.addTable(name)
      }
      version = try presentVersion()
    } catch {
      forget()
      throw error
    }
  }
}
