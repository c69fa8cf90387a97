import Buckia
import BuckiaBytes
import BuckiaFormat
import SQLiteChangesets
import SQLiteSchemas
import TestSupport

/// Makes the diff files of one stream, each of which inserts a row into `t(id INTEGER PRIMARY KEY, n)`.
struct StreamAuthor {
  /// A file that has been made.
  struct File {
    let id: KSUID
    let digest: ContentDigest
    let sequence: Int64
    let bytes: [UInt8]
    var name: String { DiffFileName.diff(id) }
    var predecessor: Manifest.Chain.Predecessor { Manifest.Chain.Predecessor(id: id, manifestSHA256: digest) }
  }

  static let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, n)"
  private static let table = TableDefinition(
    name: "t", columns: [ColumnDefinition(name: "id", declaredType: "INTEGER"), ColumnDefinition(name: "n")],
    primaryKey: [0])

  let stream: StreamID
  /// The person who signs; nil for no signature.
  var person: UInt8?
  /// An identity that signs instead, with its own keys.
  var identity: Identity?
  /// The time of the next id, in seconds since 1970.
  var time: Int64 = 1_600_000_000

  /// - Parameter number: The number of the stream.
  init(_ number: UInt8 = 1, person: UInt8? = nil) throws {
    stream = try StreamID([UInt8](repeating: number, count: 16)).required
    self.person = person
  }

  /// Makes the file that follows another one.
  ///
  /// - Parameters:
  ///   - row: The id of the inserted row; by default the sequence number of the file.
  ///   - changeset: The changes, instead of that INSERT.
  mutating func next(
    after last: File?, row: Int64? = nil, kind: Manifest.Kind = .delta, sequence: Int64? = nil,
    replacing: StreamID? = nil, changeset: [UInt8]? = nil
  ) throws -> File {
    let number = sequence ?? (last?.sequence ?? 0) + 1
    let id = Exchange.id(at: time)
    time += 1
    var writer = DiffFileWriter()
    writer.signer = try identity.map { try ManifestSigner($0) } ?? person.map { try signer($0) }
    let manifest = Manifest(
      id: id, kind: kind,
      chain: Manifest.Chain(
        stream: stream, sequence: number, follows: number > 1 ? last?.predecessor : nil, replaces: replacing))
    let output = MemoryOutput()
    let written = try writer.write(
      DiffFileDraft(manifest: manifest, schema: .included([Self.table])),
      changeset: TemporaryBuffer(changeset ?? insertion(into: "t", values: [row ?? number, number])), to: output)
    return File(id: id, digest: written.manifestDigest, sequence: number, bytes: output.bytes)
  }

  /// Makes the first files of the stream.
  mutating func files(_ count: Int) throws -> [File] {
    var files: [File] = []
    for _ in 0..<count { files.append(try next(after: files.last)) }
    return files
  }
}

extension Optional {
  fileprivate struct Missing: Error {}
  /// The value, or an error if there is none.
  fileprivate var required: Wrapped {
    get throws {
      guard let self else { throw Missing() }
      return self
    }
  }
}

extension Exchange {
  /// Puts files into the inbound folder.
  func deliver(_ files: StreamAuthor.File...) throws { try deliver(files) }

  /// Puts files into the inbound folder.
  func deliver(_ files: [StreamAuthor.File]) throws {
    for file in files { try folder.write(file.bytes, to: "inbound/\(file.name)") }
  }
}
