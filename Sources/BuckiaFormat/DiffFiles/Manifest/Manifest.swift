import BuckiaBytes
import Crypto
import SQLiteSchemas

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The first member of a diff file: its sender, its recipients, a description of its content, and the digests of all
/// other members.
///
/// Signed or not, it is checked before anything else of the file is used. The digest of its exact bytes identifies the
/// diff. `Schemas/core.md` specifies each field.
package struct Manifest: Equatable, Sendable {
  /// The version of the format that this code writes and reads.
  package static let format: Int64 = 1

  /// The purpose of a diff.
  package enum Kind: String, Sendable, CaseIterable {
    /// The changes since its predecessor.
    case delta
    /// Everything in scope: starts or replaces a chain.
    case snapshot
    /// No changes, only acknowledgements.
    case ack
  }

  /// The names of fields that a reader must know to use the diff.
  package var critical: [String]
  /// The purpose of the diff.
  package var kind: Kind
  /// The diff's own id, also its file's name.
  package var id: KSUID
  /// The shared database it belongs to.
  package var dataset: DatasetID?
  /// The sender.
  package var sender: Sender?
  /// Whom it is for.
  package var audience: Audience?
  /// Its place in a stream.
  package var chain: Chain?
  /// The diffs of others that the sender has applied.
  package var acknowledgements: [Acknowledgement]
  /// SHA-256 of the `schema.json` that describes its tables, which is included or already known to the recipients.
  package var schema: ContentDigest?
  /// Columns that have other names in the newer database than in the older one.
  package var renames: [ColumnRename]
  /// Tables with integer keys that the sender's replica assigns: another replica may have assigned the same to another
  /// row.
  package var ownKeys: [TableName]
  /// The hashed signing keys of the people with whom the sender shares, and who may pass on its rows.
  package var sharedWith: Audience?
  /// The tables with changes, in the order in which they first appear in the changeset.
  package var tables: [Table]
  /// The states of the stream's tables after this diff.
  package var states: [State]
  /// Rows that the diff holds again as INSERTs, in the place of all that its stream has had of them.
  package var resent: [Rows]
  /// Rows of others' streams that the sender requests again.
  package var requests: [Rows]
  /// Every other member of the file but the signature, in order.
  package var members: [Member]
  /// Fields that are unknown to this version, kept as they are.
  package var additional: JSONObject

  /// Creates a manifest.
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
  /// The sender of a diff. A local, unsigned one may omit fields.
  package struct Sender: Equatable, Sendable {
    /// The person's signing key; a signature must be by it.
    package var identity: SigningKey?
    /// The copy of the database.
    package var replica: ReplicaID?
    /// The life of that copy.
    package var incarnation: IncarnationID?
    /// Fields that are unknown to this version.
    package var additional: JSONObject

    /// Creates a sender.
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
    /// Fields that are unknown to this version.
    package var additional = JSONObject()

    /// Creates a place in a stream.
    package init(
      stream: StreamID, sequence: Int64, follows: Predecessor? = nil, replaces: StreamID? = nil
    ) {
      self.stream = stream
      self.sequence = sequence
      self.follows = follows
      self.replaces = replaces
    }
  }

  /// The diffs of one stream that the sender has applied.
  package struct Acknowledgement: Equatable, Sendable {
    /// The state of a diff that is not applied.
    package enum State: String, Sendable, CaseIterable {
      /// Parts of it wait for an upgrade.
      case held
      /// A predecessor is missing.
      case waiting
      /// Outside the rights of its sender.
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
    /// Fields that are unknown to this version.
    package var additional = JSONObject()

    /// Creates an acknowledgement.
    package init(
      stream: StreamID, incarnation: IncarnationID, through: Int64, except: [Exception] = []
    ) {
      self.stream = stream
      self.incarnation = incarnation
      self.through = through
      self.except = except
    }
  }

  /// The total number of changes.
  package var changeCount: Int {
    tables.flatMap { [$0.inserted, $0.updated, $0.deleted] }.reduce(0) { sum, count in
      let (total, overflows) = sum.addingReportingOverflow(Int(clamping: count))
      return overflows ? .max : total
    }
  }

  /// A table with changes.
  package struct Table: Equatable, Sendable {
    /// The kind of key that identifies rows.
    package enum Key: String, Sendable {
      /// The table's primary key.
      case primary
      /// The rowid, as a leading column `_rowid_`, because the table has no primary key.
      case rowid
    }

    /// The order of the table's changes; a hint.
    package enum Order: String, Sendable {
      /// Deletes, updates, inserts, each by primary key.
      case key
      /// As the author made or found them.
      case author
    }

    /// The name, as in the changeset.
    package var name: String
    /// The number of its columns in the changeset, with the leading `_rowid_`.
    package var columns: Int
    /// The kind of key that identifies rows.
    package var key: Key
    /// The order of the changes.
    package var order: Order
    /// The number of INSERTs.
    package var inserted: Int64
    /// The number of UPDATEs.
    package var updated: Int64
    /// The number of DELETEs, with withdrawals.
    package var deleted: Int64
    /// The number of DELETEs that are withdrawals: rows that left the scope and are not deleted by their owner.
    package var withdrawn: Int64
    /// Fields that are unknown to this version.
    package var additional = JSONObject()

    /// Creates an entry.
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
    /// Fields that are unknown to this version.
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
  /// People, as salted hashes of their keys: readers find themselves, others learn only the number.
  case recipients(salt: Salt, hashes: [ContentDigest])
  /// All who follow a stream.
  case broadcast(StreamID)

  /// 16 random bytes, new for each diff, which makes the hash of one recipient different in each.
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

  /// Hashes public keys, to hide their owners; nil for no keys.
  package init?(of keys: [[UInt8]]) {
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<Salt.byteCount).map { _ in UInt8.random(in: 0...255, using: &random) }
    guard !keys.isEmpty, let salt = Salt(bytes) else { return nil }
    // Sorted by hash, since the order of the keys could reveal their owners.
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
/// The prefix excludes that the signature is used for another purpose of the same key. See [RFC
/// 8032](https://www.rfc-editor.org/rfc/rfc8032).
package struct ManifestSigner: Sendable {
  /// The number of bytes of a signature.
  static let signatureByteCount = 64

  /// The signed bytes.
  static func message(_ manifest: [UInt8]) -> [UInt8] { Array("buckia/manifest/v1\n".utf8) + manifest }

  /// The public key, which the manifest has as `sender.identity`.
  package let identity: SigningKey
  private let key: Curve25519.Signing.PrivateKey

  /// Creates a signer with a private key.
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

  func signature(of manifest: [UInt8]) throws(DiffFileError) -> [UInt8] { try sign(Self.message(manifest)) }

  /// Signs a message, whose beginning has to say what is signed.
  package func sign(_ message: [UInt8]) throws(DiffFileError) -> [UInt8] {
    do { return Array(try key.signature(for: message)) } catch {
      throw DiffFileError(.badSignature, "it cannot be signed: \(error)")
    }
  }
}
