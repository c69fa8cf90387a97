import ArgumentParser
import Buckia

/// The database a verb works on, and how long it waits for it.
struct DatabaseOptions: ParsableArguments {
  @Argument(help: "The database.")
  var database: String

  @Option(
    help: ArgumentHelp("How long to wait for another program's lock, in milliseconds.", valueName: "milliseconds"))
  var busyTimeout: Int32 = 10_000

  func validate() throws {
    guard busyTimeout >= 0 else { throw ValidationError("--busy-timeout must not be negative.") }
  }

  /// The way in to the database.
  ///
  /// - Parameter home: What belongs to the person.
  func manager(home: BuckiaHome) -> DatabaseManager {
    var manager = DatabaseManager(database, home: home)
    manager.busyTimeout = busyTimeout
    return manager
  }
}
