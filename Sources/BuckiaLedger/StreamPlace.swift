import BuckiaBytes

/// A diff's place in a stream: the diffs of one replica for one scope and audience, each of which names the one before it.
package struct StreamPlace: Equatable, Sendable {
  /// The diff before another one in its stream.
  package struct Predecessor: Equatable, Sendable {
    /// Its id.
    package let id: KSUID
    /// The digest of its manifest.
    package let digest: [UInt8]

    /// Names a diff.
    package init(id: KSUID, digest: [UInt8]) {
      self.id = id
      self.digest = digest
    }
  }

  /// The stream: 16 bytes.
  package let stream: [UInt8]
  /// The life of the replica that it belongs to: 16 bytes; nil where the manifest does not say.
  package let incarnation: [UInt8]?
  /// The diff's number in the stream, from 1.
  package let sequence: Int64
  /// The diff before it; nil for one that needs none.
  package let follows: Predecessor?
  /// The stream that a snapshot takes the place of; nil for none.
  package let replaces: [UInt8]?
  /// Whether the diff holds all that the diffs before it say, so that these are not needed.
  package let isSnapshot: Bool

  /// Takes what a manifest says.
  package init(
    stream: [UInt8], incarnation: [UInt8]? = nil, sequence: Int64, follows: Predecessor?, replaces: [UInt8]? = nil,
    isSnapshot: Bool = false
  ) {
    self.stream = stream
    self.incarnation = incarnation
    self.sequence = sequence
    self.follows = follows
    self.replaces = replaces
    self.isSnapshot = isSnapshot
  }

  /// The place in a stream that goes on beside the one which it takes the place of.
  package var besideReplaced: StreamPlace {
    StreamPlace(
      stream: stream, incarnation: incarnation, sequence: sequence, follows: follows, isSnapshot: isSnapshot)
  }
}
