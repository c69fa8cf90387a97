import BuckiaLedger
import SQLiteSchemas

/// What other replicas call the rows of a diff, as far as its sender knows.
package struct RowNaming: Sendable {
  /// Neighbouring changes whose rows the same replicas call something.
  package struct Run: Sendable {
    /// How many changes.
    package let count: Int64
    /// What replicas call the rows; empty where the sender alone does.
    package let names: [Names]

    /// Names some rows.
    package init(count: Int64, names: [Names]) {
      self.count = count
      self.names = names
    }
  }

  /// What a replica calls the rows of a run.
  package struct Names: Sendable {
    /// The replica.
    package let replica: [UInt8]
    /// Its key of each row; empty where it calls them as the changes do.
    package let keys: [Int64]
    /// The hash of each row as the sender last took it from that replica; empty where the rows have not changed since.
    package let versions: [UInt64]
    /// The counts of rows with this content that the replica, or one of its incarnations, has inserted; nil for rows with a key.
    package let copies: CopyCounts.Count?

    /// Names some rows.
    package init(replica: [UInt8], keys: [Int64], versions: [UInt64] = [], copies: CopyCounts.Count? = nil) {
      self.replica = replica
      self.keys = keys
      self.versions = versions
      self.copies = copies
    }
  }

  /// A row that rows of the diff refer to, and that a replica calls otherwise than the sender.
  package struct Reference: Sendable {
    /// Its table.
    package let table: TableName
    /// Its key at the sender.
    package let key: Int64
    /// The replica.
    package let replica: [UInt8]
    /// Its key there.
    package let name: Int64

    /// Names a row.
    package init(table: TableName, key: Int64, replica: [UInt8], name: Int64) {
      self.table = table
      self.key = key
      self.replica = replica
      self.name = name
    }
  }

  /// The changes, in their order; empty where the sender alone has given all keys.
  package var runs: [Run] = []
  /// Rows that are referred to.
  package var references: [Reference] = []
  /// References that no foreign key declares, with the table that refers.
  package var links: [(table: TableName, key: ForeignKey)] = []

  /// Names nothing.
  package init() {}
}
