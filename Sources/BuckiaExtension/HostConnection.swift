import Buckia
import SQLiteConnections

/// The connection that a function of the extension is called on.
///
/// It does not keep the connection alive: SQLite removes the functions that hold it when the connection is closed.
struct HostConnection {
  private let handle: OpaquePointer

  init(_ handle: OpaquePointer) { self.handle = handle }

  /// Works on the connection as a database.
  ///
  /// - Parameters:
  ///   - home: What belongs to the person who uses it.
  ///   - body: What to do.
  /// - Throws: Whatever `body` throws, as an error of an SQL function.
  func withDatabase<Result>(home: BuckiaHome = .standard, _ body: (DatabaseManager) throws -> Result) throws -> Result {
    try SQLiteFunctionFailure.wrapping { try DatabaseManager.borrowing(handle, home: home, body) }
  }

  /// Makes sure that the statement by which a function was called leaves room for transactions and changes of the schema.
  ///
  /// A function can begin and commit a transaction while the statement that calls it runs, as long as that does not read or write
  /// any table. Inside a transaction of the program's, it can open a savepoint as long as the statement does not write.
  ///
  /// - Throws: `SQLiteFunctionFailure`.
  func requireRoom(for function: String) throws {
    try SQLiteConnection.borrowing(handle) { connection in
      if connection.isWritingStatementRunning {
        throw SQLiteFunctionFailure(
          "\(function) cannot be called by a statement that writes, or while one is running; call it in a SELECT of its own"
        )
      }
      if !connection.isInTransaction, connection.hasLocks {
        throw SQLiteFunctionFailure(
          "\(function) cannot be called by a statement that reads tables, or while one is running, but inside a transaction; call it "
            + "in a SELECT without FROM, or BEGIN first")
      }
    }
  }
}

extension SQLiteFunctionFailure {
  /// Runs a call of Buckia's, whose errors become those of an SQL function.
  static func wrapping<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let failure as SQLiteFunctionFailure {
      throw failure
    } catch let interruption as ApplyInterruption {
      throw SQLiteFunctionFailure(interruption.description, isBusy: isBusy(interruption.cause))
    } catch {
      let wrapped = BuckiaError.wrapped(error)
      throw SQLiteFunctionFailure(String(describing: wrapped), isBusy: isBusy(wrapped))
    }
  }

  private static func isBusy(_ error: any Error) -> Bool { (error as? BuckiaError)?.isBusy ?? false }
}
