#if GRDB
  import Buckia
  import GRDB

  extension Database {
    /// This connection, with the calls of Buckia.
    ///
    /// ```swift
    /// try queue.write { db in
    ///   let report = try db.buckia.processInboundChanges(["inbound"])
    ///   print(report.changedTables)
    /// }
    /// ```
    ///
    /// Use it as you use the connection: inside the closure that it was passed to.
    public var buckia: ReplicatedDatabase { buckia(home: .standard) }

    /// This connection, with the calls of Buckia.
    ///
    /// - Parameter home: What belongs to the person who uses the database.
    public func buckia(home: BuckiaHome) -> ReplicatedDatabase { ReplicatedDatabase(self, copy: nil, home: home) }

    /// This connection, with the calls of Buckia, where another copy of SQLite has opened it than the one that Buckia
    /// links.
    ///
    /// That is so where GRDB was built with a custom SQLite or with SQLCipher. Calls of ``buckia`` throw then.
    ///
    /// - Parameters:
    ///   - copy: The copy that GRDB uses.
    ///   - home: What belongs to the person who uses the database.
    public func buckia(of copy: SQLiteCopy, home: BuckiaHome = .standard) -> ReplicatedDatabase {
      ReplicatedDatabase(self, copy: copy, home: home)
    }
  }
#endif
