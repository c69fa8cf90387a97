import SQLiteSchemas

/// What a diff says of its sender and of streams, beside its own place in one.
package struct StreamClaims: Equatable, Sendable {
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

  /// The sender's replica: 16 bytes; nil where the diff does not say.
  package var replica: [UInt8]?
  /// What its sender has applied.
  package var acknowledgements: [Acknowledgement] = []
  /// Whether it withdraws rows.
  package var withdraws = false
  /// Tables whose rows have integer keys that its sender's replica has given out itself.
  package var ownKeys: Set<TableName> = []

  /// Says nothing.
  package init() {}
}
