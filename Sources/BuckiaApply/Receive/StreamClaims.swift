import SQLiteSchemas

/// What a diff says of its sender and of streams, beside its own place in one.
package struct StreamClaims: Sendable {
  /// How far its sender has applied a stream.
  package struct Acknowledgement: Equatable, Sendable {
    /// The stream: 16 bytes.
    package let stream: [UInt8]
    /// The incarnation whose stream it is: 16 bytes.
    package let incarnation: [UInt8]
    /// The number up to which everything has been applied.
    package let through: Int64

    /// Says how far a stream has been applied.
    package init(stream: [UInt8], incarnation: [UInt8], through: Int64) {
      self.stream = stream
      self.incarnation = incarnation
      self.through = through
    }
  }

  /// The sender's replica; nil where the diff does not say. 16 bytes, or more where the diff claims a replica that another key has signed as.
  package var replica: [UInt8]?
  /// The key, as the ledger has it, that has first signed as the replica which the diff claims; nil where that is its sender's.
  package var firstSigner: String?
  /// What its sender has applied.
  package var acknowledgements: [Acknowledgement] = []
  /// What its stream holds of a table after it.
  package struct State: Equatable, Sendable {
    /// The table.
    package let table: String
    /// How many rows there are.
    package let rows: Int64
    /// The sum of the hashes of all rows: 16 bytes.
    package let digest: [UInt8]
    /// The first two bytes of the sums of the buckets that the diff has changed; nil where they are not said.
    package let buckets: [UInt8: [UInt8]]?

    /// Says what there is.
    package init(table: String, rows: Int64, digest: [UInt8], buckets: [UInt8: [UInt8]]?) {
      self.table = table
      self.rows = rows
      self.digest = digest
      self.buckets = buckets
    }
  }

  /// What its stream holds of the tables that it changes.
  package var states: [State] = []
  /// Which rows of a table: those in some buckets, or all.
  package struct Rows: Equatable, Sendable {
    /// The stream that they are asked of; nil for the diff's own.
    package let stream: [UInt8]?
    /// The table.
    package let table: String
    /// The buckets of their keys; nil for all.
    package let buckets: Set<UInt8>?

    /// Names rows.
    package init(of stream: [UInt8]?, table: String, buckets: Set<UInt8>?) {
      self.stream = stream
      self.table = table
      self.buckets = buckets
    }
  }

  /// Rows that it holds anew, in the place of all that its stream has had of them.
  package var resent: [Rows] = []
  /// Rows of the reader's streams of which its sender asks for all anew.
  package var requests: [Rows] = []
  /// Whether it withdraws rows.
  package var withdraws = false
  /// Tables whose rows have integer keys that its sender's replica has given out itself.
  package var ownKeys: Set<TableName> = []
  /// True for the keys of others, in hex, with whom its sender shares such rows.
  package var isSharedWith: @Sendable (String) -> Bool = { _ in false }

  /// Says nothing.
  package init() {}
}
