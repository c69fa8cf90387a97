import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A state of a database that a ``BackupStore`` can restore.
///
/// `Schemas/backups.md` specifies the object that holds it.
public struct BackupPoint: Hashable, Sendable, Identifiable {
  /// The id, by which the object is named.
  public let id: KSUID
  /// The history that the point continues: the points of one database, made on one device. 32 hexadecimal digits.
  public var history: String { historyID.description }
  let historyID: HistoryID
  /// True if a history, or the first eight or more digits of one, is that of the point.
  func isOf(_ history: String) -> Bool { history.utf8.count >= 8 && self.history.hasPrefix(history) }
  /// The number of the point in its history, from 1.
  public let sequence: Int64
  /// The time at which the state was read, in milliseconds since 1970.
  public let time: Int64
  /// The note that was given with it; nil for none, and for an encrypted one until ``openNote(with:)`` has opened it.
  public private(set) var note: String?
  /// The encrypted note, an age file.
  private let sealedNote: [UInt8]?
  /// True if the note is encrypted, as in an encrypted store.
  public var hasEncryptedNote: Bool { sealedNote != nil }
  /// The size of a page of the database in bytes.
  public let pageSize: Int
  /// The number of pages.
  public let pageCount: Int64
  /// True if it is the state that a restored point has replaced. Such a point is restored only by its id or time.
  public let isBeforeRestore: Bool
  /// The sum of the digests of all pages.
  let sum: PageSum
  /// The digest of the statements of the previous point; nil for the first point of a history.
  let previous: ContentDigest?
  /// The key that has signed it; nil for an unsigned point.
  let signer: SigningKey?

  /// The size of the restored database in bytes.
  public var databaseByteCount: Int64 { Int64(pageSize) * pageCount }
  /// True if the point is signed.
  public var isSigned: Bool { signer != nil }

  /// The id of a history: 16 random bytes.
  struct HistoryID: FixedBytes {
    static let byteCount = 16
    let bytes: [UInt8]
    init(checked bytes: [UInt8]) { self.bytes = bytes }
  }
}

extension BackupPoint {
  /// - Parameter recipients: For whom the note is encrypted; nil for nobody.
  /// - Throws: `BuckiaError` with `misuse` if the note is too long.
  init(
    id: KSUID, historyID: HistoryID, sequence: Int64, time: Int64, note: String?, for recipients: Encryption?,
    pageSize: Int, pageCount: Int64, isBeforeRestore: Bool, sum: PageSum, previous: ContentDigest?, signer: SigningKey?
  ) throws {
    (self.id, self.historyID, self.sequence, self.time, self.note) = (id, historyID, sequence, time, note)
    (self.pageSize, self.pageCount, self.isBeforeRestore) = (pageSize, pageCount, isBeforeRestore)
    (self.sum, self.previous, self.signer) = (sum, previous, signer)
    sealedNote = try recipients.flatMap { recipients in
      try note.map { note in
        let sealed = TemporaryBuffer()
        let output = try EncryptingOutput(sealed, for: recipients)
        try output.write(Array(note.utf8))
        try output.finish()
        return try sealed.allBytes()
      }
    }
    let limit = BackupObject.headerByteCount / 2
    guard statements.utf8.count <= limit else {
      throw BuckiaError(
        .misuse, "the note is too long for the header of a point; with many recipients it takes more space")
    }
  }

  /// Decrypts an encrypted note.
  ///
  /// - Parameter identities: The secret keys. If none opens it, ``note`` stays nil.
  /// - Throws: `BuckiaError` if it is damaged.
  public mutating func openNote(with identities: [AgeIdentity]) throws {
    guard note == nil, let sealedNote, !identities.isEmpty else { return }
    do {
      let sealed = TemporaryBuffer(sealedNote)
      let input = try DecryptingInput(PositionedInput(sealed, from: 0), with: Decryption(identities: identities))
      var bytes = [UInt8](repeating: 0, count: sealedNote.count)
      let count = try bytes.withUnsafeMutableBytes { try input.readFully(into: $0) }
      note = String(decoding: bytes[..<count], as: UTF8.self)
    } catch let error as ByteStreamError where error.code == .noMatchingIdentity {
      return
    } catch { throw BuckiaError.wrapped(error) }
  }

  /// The statements about the state, as the object has them. They never change, so they are signed once.
  var statements: String {
    var object = JSONObject([
      .init("id", .string(id.description)), .init("history", .string(history)), .init("sequence", .integer(sequence)),
      .init("time", .integer(time)), .init("pageSize", .number(pageSize)), .init("pages", .integer(pageCount)),
      .init("sum", .string(sum.digest.description)),
    ])
    if isBeforeRestore { object.append("beforeRestore", true) }
    if let sealedNote {
      object.append("sealedNote", .string(Data(sealedNote).base64EncodedString()))
    } else if let note {
      object.append("note", .string(note))
    }
    if let previous { object.append("previous", .string(previous.description)) }
    if let signer { object.append("signer", .string(signer.description)) }
    return JSONValue.object(object).lineText()
  }

  init(statements: String) throws(StorageError) {
    var fields = try BackupDocument.fields(statements)
    id = try fields.id("id")
    historyID = try fields.bytes("history", as: HistoryID.self)
    sequence = try fields.integer("sequence", in: 1...Int64.max)
    time = try fields.time("time")
    pageSize = Int(try fields.integer("pageSize", in: 512...65_536))
    pageCount = try fields.integer("pages", in: 1...PageRun.pageLimit)
    sum = PageSum(try fields.bytes("sum", as: ContentDigest.self))
    isBeforeRestore = try fields.flag("beforeRestore")
    note = try fields.stringIfNamed("note")
    let sealed = try fields.stringIfNamed("sealedNote")
    sealedNote = sealed.flatMap { Data(base64Encoded: $0) }.map { Array($0) }
    guard sealed == nil || sealedNote != nil else { throw fields.invalid("sealedNote", "is no base64") }
    previous = try fields.optionalBytes("previous", as: ContentDigest.self)
    signer = try fields.optionalBytes("signer", as: SigningKey.self)
    try fields.finish()
    guard pageSize & (pageSize - 1) == 0 else { throw fields.invalid("pageSize", "is no power of two") }
  }
}

/// An object of a store: a point, and the pages that its state has and the state of another point has not.
struct BackupObject: Hashable, Sendable {
  let point: BackupPoint
  /// The digest of the point's statements.
  let digest: ContentDigest
  let payload: Payload
  /// The place in the store.
  let path: RemotePath

  /// The pages that an object contains.
  struct Payload: Hashable, Sendable {
    /// The point that has the other pages; nil if there are none.
    let base: KSUID?
    /// The number of pages.
    let pageCount: Int64
    /// The size and the digest of the bytes after the header.
    let byteCount: Int64
    let digest: ContentDigest
    let isEncrypted: Bool
    /// The key that has signed the lines; nil for an unsigned object.
    let signer: SigningKey?
  }

  var id: KSUID { point.id }
  var byteCount: Int64 { Int64(Self.headerByteCount) + payload.byteCount }

  /// The size of the header: five lines of text, and zero bytes.
  ///
  /// 1. `buckia backup 1`
  /// 2. the statements about the state
  /// 3. the signature of line 2, or `-`
  /// 4. the payload
  /// 5. the signature of the lines before it, or `-`
  static let headerByteCount = 4_096
  private static let magic = "buckia backup 1"
  /// The beginning of the signed bytes.
  private static let domain = "buckia/backup/v1\n"
  /// The greatest length of a note in bytes.
  static let noteLimit = 1_000

  /// Writes a header.
  ///
  /// - Parameters:
  ///   - former: The lines with the statements and their signature of an object of the same point; nil for a new point.
  ///   - signer: The key to sign with; nil for an unsigned point.
  static func header(
    of point: BackupPoint, _ payload: Payload, keeping former: ArraySlice<String>? = nil, signer: ManifestSigner?
  ) throws -> [UInt8] {
    func signature(_ text: String) throws -> String {
      try signer.map { HexText.lowercase(try $0.sign(Array((domain + text).utf8))) } ?? "-"
    }
    var lines = [magic] + (try former ?? [point.statements, signature(point.statements)])
    lines.append(payload.text)
    lines.append(try signature(lines.joined(separator: "\n")))
    let bytes = Array((lines.joined(separator: "\n") + "\n").utf8)
    return bytes + Array(repeating: 0, count: headerByteCount - bytes.count)
  }

  /// The lines of a header.
  ///
  /// - Throws: `StorageError` with `damaged`, or with `truncated` if it is shorter than a header.
  static func lines(_ header: [UInt8], at path: RemotePath) throws(StorageError) -> [String] {
    guard header.count >= headerByteCount else { throw .cutOff(path) }
    let text = String(decoding: header.prefix { $0 != 0 }, as: UTF8.self)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard header.count == headerByteCount, lines.count == 6, lines[0] == magic else {
      throw StorageError(.damaged, "it is not an object of a backup", path: path)
    }
    return lines
  }

}

extension BackupObject {
  /// Reads a header.
  ///
  /// - Parameter object: The object in the listing of the store.
  /// - Throws: `StorageError` with `damaged`, also if a signature does not match; `truncated` if its upload was cut off.
  init(header: [UInt8], of object: StoredObject) throws(StorageError) {
    path = object.path
    let lines = try Self.lines(header, at: path)
    do throws(StorageError) {
      point = try BackupPoint(statements: lines[1])
      digest = ContentDigest(of: Array(lines[1].utf8))
      payload = try Payload(text: lines[3])
    } catch { throw error.about(path) }
    guard object.byteCount >= byteCount else { throw .cutOff(path) }
    guard object.byteCount == byteCount else {
      throw StorageError(
        .damaged, "it has \(object.byteCount) bytes and states that it has \(byteCount)", path: path)
    }
    let all = lines[0...3].joined(separator: "\n")
    for (signer, signature, text) in [(point.signer, lines[2], lines[1]), (payload.signer, lines[4], all)] {
      if signer == nil, signature == "-" { continue }
      guard let bytes = HexText.bytes(signature), signer?.hasSigned(Array((Self.domain + text).utf8), bytes) == true
      else {
        throw StorageError(.damaged, "its signature does not match: it was altered or forged", path: path)
      }
    }
  }
}

extension StorageError {
  /// An object is shorter than it states. Some servers keep the beginning of an upload that was cut off.
  static func cutOff(_ path: RemotePath) -> StorageError {
    StorageError(.truncated, "its upload was cut off", path: path)
  }
}

extension BackupObject.Payload {
  var text: String {
    var object = JSONObject([
      .init("pages", .integer(pageCount)), .init("bytes", .integer(byteCount)),
      .init("sha256", .string(digest.description)), .init("encrypted", .bool(isEncrypted)),
    ])
    if let base { object.append("base", .string(base.description)) }
    if let signer { object.append("signer", .string(signer.description)) }
    return JSONValue.object(object).lineText()
  }

  init(text: String) throws(StorageError) {
    var fields = try BackupDocument.fields(text)
    pageCount = try fields.integer("pages", in: 0...PageRun.pageLimit)
    byteCount = try fields.integer("bytes", in: 0...Int64.max >> 1)
    digest = try fields.bytes("sha256", as: ContentDigest.self)
    isEncrypted = try fields.bool("encrypted")
    base = try fields.has("base") ? fields.id("base") : nil
    signer = try fields.optionalBytes("signer", as: SigningKey.self)
    try fields.finish()
  }
}

/// A line of a header, for errors.
struct BackupDocument: JSONDocument {
  func invalid(_ field: String, _ problem: String) -> StorageError {
    StorageError(.damaged, "\"\(field)\" of its header \(problem)")
  }

  static func fields(_ text: String) throws(StorageError) -> JSONFields<BackupDocument> {
    let value: JSONValue
    do throws(JSONError) { value = try JSONParser.parse(Array(text.utf8)) } catch {
      throw StorageError(.damaged, "its header is not in order: \(error)")
    }
    return try JSONFields(value, of: BackupDocument())
  }
}
