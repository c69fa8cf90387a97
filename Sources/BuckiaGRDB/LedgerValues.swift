#if GRDB
  import Buckia
  import GRDB

  // What the ledger's columns hold. GRDB reads and compares them by their raw values.
  extension DiffState: DatabaseValueConvertible {}
  extension ConflictKind: DatabaseValueConvertible {}
  extension ConflictOutcome: DatabaseValueConvertible {}
#endif
