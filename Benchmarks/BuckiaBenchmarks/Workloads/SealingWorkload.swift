import Buckia
import BuckiaFormat
import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ImplementationName {
  /// The first diff of a stream, signed, and encrypted for one person.
  package static let applyingSealed: ImplementationName = "Buckia, the first diff of a stream, encrypted and signed"
  /// Diff files in memory, signed, and encrypted for one person.
  package static let sealing: ImplementationName = "Buckia, packing, signing and encrypting"
  /// Diff files in memory, unsigned and unencrypted.
  package static let packingOnly: ImplementationName = "Buckia, packing"
  /// What there is of a diff file beside its compressed changeset.
  fileprivate static let envelope: ImplementationName = "Buckia, signed and encrypted"
}

extension Comparison {
  /// Applying what is encrypted and signed, compared with the same as it is.
  ///
  /// - Parameter share: The target: how much longer it may take, as a share of the time.
  package static func openingSealed(_ shape: TableShape, rows: Int, share: Double? = nil) -> Comparison {
    Comparison(
      id: "opening-sealed-\(shape.id)",
      title: "Opening what is encrypted and signed, \(Quantity.grouped(rows)) rows, \(shape.rawValue)",
      figures: [Figure(.extraShare, of: .applyingSealed, against: .applyingShare, target: share)]
    ) { folder in
      let source = folder.newFile()
      try shape.makeDatabase(at: source, rows: rows)
      let empty = folder.newFile()
      try shape.makeDatabase(at: empty, rows: 0)
      let key = AgeIdentity()
      let shared = folder.newFile(".bdiff")
      try EngineCalls.share(try folder.copy(of: source), into: shared, home: folder.file("home"))
      let sealed = folder.newFile(".bdiff.age")
      try EngineCalls.share(
        try folder.copy(of: source), sealedFor: key, into: sealed, home: folder.file("home of the other"))
      func applying(_ file: String, as name: ImplementationName, isSubject: Bool) -> Implementation {
        Implementation(name, isSubject: isSubject) { folder in
          let inbound = try folder.copy(of: file, suffix: isSubject ? ".bdiff.age" : ".bdiff")
          let database = try SQLiteConnection(opening: try folder.copy(of: empty), as: .readWrite)
          let path = database.path
          return ConnectionRun(database) { _ in
            try EngineCalls.apply(inbound: inbound, to: path, decrypting: isSubject ? key : nil)
          }
        }
      }
      return Workload(
        size: "diff file of \(Quantity.size(Int(FileSystem.byteCount(of: shared))))",
        implementations: [
          applying(sealed, as: .applyingSealed, isSubject: true),
          applying(shared, as: .applyingShare, isSubject: false),
        ])
    }
  }

  /// Signing and encrypting diffs for one person, compared with packing them.
  ///
  /// - Parameters:
  ///   - rows: How many rows each diff has.
  ///   - count: How many diffs there are.
  ///   - target: How much longer each may take, in seconds for many diffs, as a share of the time for one.
  package static func sealing(rows: Int, count: Int = 500, target: Double? = nil) -> Comparison {
    Comparison(
      id: "sealing-\(rows)",
      title: "Packing \(count == 1 ? "a diff" : "\(count) diffs") of \(Quantity.grouped(rows)) rows, in memory",
      figures: [
        Figure(
          count == 1 ? .extraShare : .extraPerItem(items: count), of: .sealing, against: .packingOnly, target: target)
      ]
    ) { folder in
      let source = try SQLiteConnection(opening: ":memory:", as: .create)
      try source.execute(TableShape.integerKey.definition)
      let changes = try RecordedChanges(of: TableShape.integerKey.insertion(of: 1...rows), on: source)
      let definition = try EngineCalls.definition(of: .integerKey)
      let signer = try EngineCalls.signer()
      let encryption = try Encryption(to: [AgeIdentity().makeRecipient()])
      func packing(_ name: ImplementationName, isSubject: Bool) -> Implementation {
        Implementation(name, isSubject: isSubject) { _ in
          ClosureRun {
            var writer = DiffFileWriter()
            writer.signer = isSubject ? signer : nil
            for number in 0..<count {
              let draft = DiffFileDraft(
                manifest: Manifest(id: EngineCalls.id(number)), schema: .included([definition]),
                tablesInKeyOrder: [TableName(TableShape.table)])
              let file = TemporaryBuffer()
              if isSubject {
                let encrypting = try EncryptingOutput(file, for: encryption)
                _ = try writer.write(draft, changeset: TemporaryBuffer(changes.sorted), to: encrypting)
                try encrypting.finish()
              } else {
                _ = try writer.write(draft, changeset: TemporaryBuffer(changes.sorted), to: file)
              }
            }
            return nil
          }
        }
      }
      return Workload(
        size: "changesets of \(changes.size)",
        implementations: [packing(.sealing, isSubject: true), packing(.packingOnly, isSubject: false)])
    }
  }

  /// How many bytes a small encrypted and signed share has beside its compressed changeset.
  ///
  /// - Parameters:
  ///   - rows: How many rows of the table have changed.
  ///   - columns: How many columns the table has.
  ///   - bytes: The target.
  package static func envelope(rows: Int, columns: Int, bytes: Double? = nil) -> Comparison {
    Comparison(
      id: "envelope-\(rows)", title: "What a share of \(rows) changes, \(columns) columns, has beside them",
      unit: .bytes,
      figures: [Figure(.value, of: .envelope, against: nil, target: bytes)]
    ) { folder in
      let source = folder.newFile()
      let names = (1..<columns).map { "column_\($0)" }
      let database = try SQLiteConnection(opening: source, as: .create)
      try database.execute(
        """
        CREATE TABLE t(id INTEGER PRIMARY KEY, \(names.joined(separator: " TEXT, ")) TEXT);
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO t SELECT i, \(names.map { "'\($0) of ' || i" }.joined(separator: ", ")) FROM n
        """)
      return Workload(
        size: "\(rows) of 1,000 rows",
        implementations: [
          Implementation(.envelope, isSubject: true) { folder in
            let (plain, sealed) = (try folder.copy(of: source), try folder.copy(of: source))
            let (home, other) = (folder.file("home"), folder.file("home of the other"))
            let key = AgeIdentity()
            try EngineCalls.share(plain, into: folder.newFile(".bdiff"), home: home)
            try EngineCalls.share(sealed, sealedFor: key, into: folder.newFile(".bdiff.age"), home: other)
            for path in [plain, sealed] {
              try SQLiteConnection(opening: path, as: .readWrite).execute(
                "UPDATE t SET column_1 = 'changed ' || id WHERE id % \(1000 / rows) = 0")
            }
            return ClosureRun {
              let (unencrypted, encrypted) = (folder.newFile(".bdiff"), folder.newFile(".bdiff.age"))
              try EngineCalls.share(plain, into: unencrypted, home: home)
              try EngineCalls.share(sealed, sealedFor: key, into: encrypted, home: other)
              let changeset = try EngineCalls.compressedCount(EngineCalls.changeset(in: unencrypted))
              return Double(Int(FileSystem.byteCount(of: encrypted)) - changeset)
            }
          }
        ])
    }
  }
}
