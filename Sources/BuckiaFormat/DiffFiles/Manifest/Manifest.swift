import BuckiaBytes
import Crypto
import SQLiteSchemas

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The first member of a diff file: who sends what to whom, and the digest of everything else in the file.
///
/// Signed or not, it is checked before anything else of the file is used. Its digest, over the exact bytes it was read
/// from, identifies the diff. `Schemas/diff-file.md` specifies each field.
package struct Manifest: Equatable, Sendable {
  /// The version of the format that this code writes and reads.
  package static let format: Int64 = 1

  /// What a diff is for.
  package enum Kind: String, Sendable, CaseIterable {
    /// The changes since its predecessor.
    case delta
    /// Everything in scope: starts or replaces a chain.
    case snapshot
    /// No changes, only acknowledgements.
    case ack
  }

  /// Fields, known or not, that a reader must understand to use the diff.
  package var critical: [String]
  /// What the diff is for.
  package var kind: Kind
  /// The diff's own id, also its file's name.
  package var id: KSUID
  /// The shared database it belongs to.
  package var dataset: DatasetID?
  /// Who made it.
  package var sender: Sender?
  /// Whom it is for.
  package var audience: Audience?
  /// Its place in a stream.
  package var chain: Chain?
  /// What its sender has applied of others.
  package var acknowledgements: [Acknowledgement]
  /// SHA-256 of the `schema.json` that describes its tables, whether that travels along or is known already.
  package var schema: ContentDigest?
  /// Columns that have other names in the newer database than in the older one.
  package var renames: [ColumnRename]
  /// Tables whose rows have integer keys that the sender's replica gives out itself: another replica may have given the same to
  /// another row.
  package var ownKeys: [TableName]
  /// The others with whom the sender shares: those who may pass on its rows. Their signing keys, hashed.
  package var sharedWith: Audience?
  /// The tables with changes, in the order in which they first appear in the changeset.
  package var tables: [Table]
  /// What the stream holds of the tables after this diff.
  package var states: [State]
  /// Rows that the diff holds again as INSERTs, in the place of all that its stream has had of them.
  package var resent: [Rows]
  /// Rows of others' streams of which the sender asks for all again.
  package var requests: [Rows]
  /// Every other member of the file but the signature, in order.
  package var members: [Member]
  /// Fields this version does not know, kept as they are.
  package var additional: JSONObject

  /// Makes a manifest.
  package init(
    id: KSUID, kind: Kind = .delta, critical: [String] = [], dataset: DatasetID? = nil, sender: Sender? = nil,
    audience: Audience? = nil, chain: Chain? = nil, acknowledgements: [Acknowledgement] = [],
    schema: ContentDigest? = nil, renames: [ColumnRename] = [], ownKeys: [TableName] = [],
    sharedWith: Audience? = nil, tables: [Table] = [], states: [State] = [],
    resent: [Rows] = [], requests: [Rows] = [],
    members: [Member] = [], additional: JSONObject = JSONObject()
  ) {
    self.id = id
    self.kind = kind
    self.critical = critical
    self.dataset = dataset
    self.sender = sender
    self.audience = audience
    self.chain = chain
    self.acknowledgements = acknowledgements
    self.schema = schema
    self.renames = renames
    self.ownKeys = ownKeys
    self.sharedWith = sharedWith
    self.tables = tables
    self.states = states
    self.resent = resent
    self.requests = requests
    self.members = members
    self.additional = additional
  }

  /// The manifest's entry for a table, by SQLite's rule for names, or nil.
  package func table(named name: String) -> Table? {
    tables.first { ASCIIName.matches($0.name, name) }
  }
}

extension Manifest {
  /// Who made a diff. A local, unsigned one may leave out what it has not.
  package struct Sender: Equatable, Sendable {
    /// The person's signing key; a signature must be by it.
    package var identity: SigningKey?
    /// The copy of the database.
    package var replica: ReplicaID?
    /// The life of that copy.
    package var incarnation: IncarnationID?
    /// Fields this version does not know.
    package var additional: JSONObject

    /// Makes a sender.
    package init(
      identity: SigningKey? = nil, replica: ReplicaID? = nil, incarnation: IncarnationID? = nil,
      additional: JSONObject = JSONObject()
    ) {
      self.identity = identity
      self.replica = replica
      self.incarnation = incarnation
      self.additional = additional
    }
  }

  /// A diff's place in the stream of its sender.
  package struct Chain: Equatable, Sendable {
    /// The diff before this one in the stream.
    package struct Predecessor: Equatable, Sendable {
      /// Its id.
      package var id: KSUID
      /// The digest of its manifest.
      package var manifestSHA256: ContentDigest
      /// Names a predecessor.
      package init(id: KSUID, manifestSHA256: ContentDigest) {
        self.id = id
        self.manifestSHA256 = manifestSHA256
      }
    }

    /// The stream.
    package var stream: StreamID
    /// The diff's number in it, from 1.
    package var sequence: Int64
    /// The diff before it; nil for the first, and for a snapshot that starts afresh.
    package var follows: Predecessor?
    /// The stream that a snapshot takes the place of.
    package var replaces: StreamID?
    /// Fields this version does not know.
    package var additional = JSONObject()

    /// Makes a place in a stream.
    package init(
      stream: StreamID, sequence: Int64, follows: Predecessor? = nil, replaces: StreamID? = nil
    ) {
      self.stream = stream
      self.sequence = sequence
      self.follows = follows
      self.replaces = replaces
    }
  }

  /// What the sender has applied of one stream.
  package struct Acknowledgement: Equatable, Sendable {
    /// What became of a diff that is not applied.
    package enum State: String, Sendable, CaseIterable {
      /// Parts of it wait for an upgrade.
      case held
      /// A predecessor is missing.
      case waiting
      /// Outside what its sender may do.
      case quarantined
      /// Refused.
      case rejected
    }

    /// A diff up to `through` that is not applied.
    package struct Exception: Equatable, Sendable {
      /// The diff.
      package var id: KSUID
      /// The outcome.
      package var state: State
      /// Names an exception.
      package init(id: KSUID, state: State) {
        self.id = id
        self.state = state
      }
    }

    /// The stream.
    package var stream: StreamID
    /// The incarnation whose stream it is.
    package var incarnation: IncarnationID
    /// The sequence number up to which, inclusive, everything is applied but `except`. 0: nothing yet.
    package var through: Int64
    /// Diffs up to `through` that are not applied.
    package var except: [Exception]
    /// Fields this version does not know.
    package var additional = JSONObject()

    /// Makes an acknowledgement.
    package init(
      stream: StreamID, incarnation: IncarnationID, through: Int64, except: [Exception] = []
    ) {
      self.stream = stream
      self.incarnation = incarnation
      self.through = through
      self.except = except
    }
  }

  /// How many changes the tables have together.
  package var changeCount: Int {
    tables.flatMap { [$0.inserted, $0.updated, $0.deleted] }.reduce(0) { sum, count in
      let (total, overflows) = sum.addingReportingOverflow(Int(clamping: count))
      return overflows ? .max : total
    }
  }

  /// A table with changes.
  package struct Table: Equatable, Sendable {
    /// By what rows are found.
    package enum Key: String, Sendable {
      /// The table's primary key.
      case primary
      /// The rowid, as a leading column `_rowid_`, because the table has no primary key.
      case rowid
    }

    /// In what order the changes of the table stand; a hint.
    package enum Order: String, Sendable {
      /// Deletes, updates, inserts, each by primary key.
      case key
      /// As the author made or found them.
      case author
    }

    /// The name, as in the changeset.
    package var name: String
    /// How many columns the changeset has for it, the leading `_rowid_` included.
    package var columns: Int
    /// By what rows are found.
    package var key: Key
    /// In what order the changes stand.
    package var order: Order
    /// How many INSERTs there are.
    package var inserted: Int64
    /// How many UPDATEs there are.
    package var updated: Int64
    /// How many DELETEs there are, withdrawals included.
    package var deleted: Int64
    /// How many of the DELETEs are withdrawals: rows that left the scope and are not deleted by their owner.
    package var withdrawn: Int64
    /// Fields this version does not know.
    package var additional = JSONObject()

    /// Makes an entry.
    package init(
      name: String, columns: Int, key: Key = .primary, order: Order = .author, inserted: Int64 = 0,
      updated: Int64 = 0, deleted: Int64 = 0, withdrawn: Int64 = 0
    ) {
      self.name = name
      self.columns = columns
      self.key = key
      self.order = order
      self.inserted = inserted
      self.updated = updated
      self.deleted = deleted
      self.withdrawn = withdrawn
    }
  }

  /// A member of the archive and the bytes it must have.
  package struct Member: Equatable, Sendable {
    /// Its name.
    package var name: String
    /// Its size in bytes.
    package var size: Int64
    /// SHA-256 of its bytes.
    package var sha256: ContentDigest
    /// Fields this version does not know.
    package var additional = JSONObject()

    /// Names a member.
    package init(name: String, size: Int64, sha256: ContentDigest) {
      self.name = name
      self.size = size
      self.sha256 = sha256
    }
  }
}

/// Whom a diff is for.
package enum Audience: Equatable, Sendable {
  /// People, known by salted hashes of their keys: readers find themselves, others learn only how many there are.
  case recipients(salt: Salt, hashes: [ContentDigest])
  /// Whoever follows a stream.
  case broadcast(StreamID)

  /// 16 random bytes, new for each diff, so that one recipient looks different in each.
  package struct Salt: FixedBytes {
    /// 16
    package static let byteCount = 16
    /// The salt.
    package let bytes: [UInt8]
    package init(checked bytes: [UInt8]) { self.bytes = bytes }
  }

  /// The entry of one recipient: SHA-256 over `buckia/audience/v1\n`, the salt and the public key.
  package static func hash(of key: [UInt8], salt: Salt) -> ContentDigest {
    var hasher = ContentHasher()
    hasher.update(Array("buckia/audience/v1\n".utf8) + salt.bytes + key)
    return hasher.digest
  }

  /// Hides who the owners of some public keys are; nil for no keys.
  package init?(of keys: [[UInt8]]) {
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<Salt.byteCount).map { _ in UInt8.random(in: 0...255, using: &random) }
    guard !keys.isEmpty, let salt = Salt(bytes) else { return nil }
    // In an order that says nothing of who they are.
    let hashes = keys.map { Self.hash(of: $0, salt: salt) }.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    self = .recipients(salt: salt, hashes: hashes)
  }

  /// True if the owner of a public key is among the recipients. False for a broadcast.
  package func addresses(_ key: [UInt8]) -> Bool {
    guard case .recipients(let salt, let hashes) = self else { return false }
    return hashes.contains(Self.hash(of: key, salt: salt))
  }
}

/// Signs manifests with a person's private key: Ed25519 over `buckia/manifest/v1\n` and the manifest's exact bytes.
///
/// The prefix keeps the signature from being used for anything else that the same key signs.
/// See [RFC 8032](https://www.rfc-editor.org/rfc/rfc8032).
package struct ManifestSigner: Sendable {
  /// How many bytes a signature has.
  static let signatureByteCount = 64

  /// What is signed.
  static func message(_ manifest: [UInt8]) -> [UInt8] { Array("buckia/manifest/v1\n".utf8) + manifest }

  /// The public half, which goes into the manifest as `sender.identity`.
  package let identity: SigningKey
  private let key: Curve25519.Signing.PrivateKey

  /// Takes a private key.
  ///
  /// - Parameter seed: The 32 bytes of an Ed25519 private key.
  /// - Throws: `DiffFileError` with code `badSignature` when they are no key.
  package init(seed: [UInt8]) throws(DiffFileError) {
    do {
      key = try Curve25519.Signing.PrivateKey(rawRepresentation: seed)
    } catch {
      throw DiffFileError(.badSignature, "the signing key is no Ed25519 key of 32 bytes")
    }
    identity = SigningKey(checked: Array(key.publicKey.rawRepresentation))
  }

  /// Signs as a person.
  ///
  /// - Throws: `DiffFileError` with code `badSignature` when the identity holds no key.
  package init(_ identity: Identity) throws(DiffFileError) { try self.init(seed: identity.signingSeed) }

  func signature(of manifest: [UInt8]) throws(DiffFileError) -> [UInt8] {
    do {
      return Array(try key.signature(for: Self.message(manifest)))
    } catch {
      throw DiffFileError(.badSignature, "the manifest cannot be signed: \(error)")
    }
  }
}
