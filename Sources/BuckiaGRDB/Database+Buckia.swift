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
    public var buckia: ReplicatedDatabase { ReplicatedDatabase(self, copy: nil) }

    /// This connection, with the calls of Buckia, where another copy of SQLite has opened it than the one that Buckia
    /// links.
    ///
    /// That is so where GRDB was built with a custom SQLite or with SQLCipher. Calls of ``buckia`` throw then.
    ///
    /// - Parameter copy: The copy that GRDB uses.
    public func buckia(of copy: SQLiteCopy) -> ReplicatedDatabase { ReplicatedDatabase(self, copy: copy) }
  }
#endif
