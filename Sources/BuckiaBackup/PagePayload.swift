import BuckiaBytes
import BuckiaFormat

/// Consecutive pages in a payload: the number of the first, from 0, and their number, 4 bytes each, big-endian; then the
/// pages. A run of no pages is the last.
struct PageRun {
  let first: Int64
  let count: Int64

  static let byteCount = 8
  /// The most pages of a database: <https://sqlite.org/limits.html#max_page_count>.
  static let pageLimit: Int64 = 4_294_967_294
  static let end = PageRun(first: 0, count: 0)

  var bytes: [UInt8] { withUnsafeBytes(of: (UInt64(first) << 32 | UInt64(count)).bigEndian) { Array($0) } }
}

/// Reads the runs of a payload.
final class PageInput {
  private let input: any ByteInput
  private let pageSize: Int
  /// The pages that follow; nil at the end.
  private(set) var run: PageRun?
  /// The number of pages of the run that have been read.
  private var read: Int64 = 0
  private var next: Int64 = 0

  /// - Parameters:
  ///   - source: The bytes of the payload.
  ///   - decryption: The secrets for it; nil if it is not encrypted.
  init(_ source: any ByteInput, with decryption: Decryption?, pageSize: Int) throws {
    let source = try decryption.map { try DecryptingInput(source, with: $0) } ?? source
    input = try ZstdInput(source, ZstdWorkspace())
    self.pageSize = pageSize
    try readRun()
  }

  private static func damaged(_ what: String) -> ByteStreamError {
    ByteStreamError(ByteStreamError.Code(rawValue: "damaged"), "its pages are damaged: \(what)")
  }

  private func readRun() throws {
    var bytes = [UInt8](repeating: 0, count: PageRun.byteCount)
    let count = try bytes.withUnsafeMutableBytes { try input.readFully(into: $0) }
    guard count == bytes.count else { throw Self.damaged("they end too early") }
    let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    let found = PageRun(first: Int64(number >> 32), count: Int64(number & 0xffff_ffff))
    read = 0
    guard found.count > 0 else {
      run = nil
      var rest = [UInt8](repeating: 0, count: 1)
      guard try rest.withUnsafeMutableBytes({ try input.readFully(into: $0) }) == 0 else {
        throw Self.damaged("something follows their end")
      }
      return
    }
    guard found.first >= next, found.first + found.count <= PageRun.pageLimit else {
      throw Self.damaged("they are out of order")
    }
    next = found.first + found.count
    run = found
  }

  /// The number of the next page; nil at the end.
  var page: Int64? { run.map { $0.first + read } }

  /// Reads pages of the run.
  ///
  /// - Parameter buffer: Receives them.
  /// - Returns: The number of the first page, and how many were read; nil at the end.
  func pages(into buffer: UnsafeMutableRawBufferPointer) throws -> (first: Int64, count: Int)? {
    guard let run else { return nil }
    let first = run.first + read
    let count = Int(min(run.count - read, Int64(buffer.count / pageSize)))
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(count * pageSize)])
    guard try input.readFully(into: target) == target.count else { throw Self.damaged("they end too early") }
    read += Int64(count)
    if read == run.count { try readRun() }
    return (first, count)
  }
}

/// Writes the payload of an object after space for its header.
final class PageOutput {
  private let file: AtomicFileOutput
  private let digesting: DigestingOutput<ContentHasher>
  private let encrypting: EncryptingOutput?
  private let output: ZstdOutput
  private var pageCount: Int64 = 0

  private static let level = 3

  /// - Parameters:
  ///   - path: The file to make.
  ///   - encryption: For whom it is encrypted; nil for an unencrypted one.
  init(at path: String, for encryption: Encryption?) throws {
    file = try AtomicFileOutput(at: path, replacing: true, isPrivate: true)
    try file.write(Array(repeating: 0, count: BackupObject.headerByteCount))
    digesting = DigestingOutput(file, ContentHasher())
    encrypting = try encryption.map { [digesting] in try EncryptingOutput(digesting, for: $0) }
    output = try ZstdOutput(encrypting ?? digesting, level: Self.level)
  }

  /// Adds consecutive pages.
  func write(_ pages: UnsafeRawBufferPointer, from first: Int64, pageSize: Int) throws {
    let count = Int64(pages.count / pageSize)
    guard count > 0 else { return }
    try output.write(PageRun(first: first, count: count).bytes)
    try output.write(pages)
    pageCount += count
  }

  /// Ends the payload, writes the header, and gives the file its name.
  func finish(
    base: KSUID?, signer: SigningKey?, _ header: (BackupObject.Payload) throws -> [UInt8]
  ) throws -> BackupObject.Payload {
    try output.write(PageRun.end.bytes)
    try output.finish()
    try encrypting?.finish()
    let payload = BackupObject.Payload(
      base: base, pageCount: pageCount, byteCount: digesting.byteCount, digest: digesting.hasher.digest,
      isEncrypted: encrypting != nil, signer: signer)
    try file.overwrite(header(payload), at: 0)
    try file.publish()
    return payload
  }
}
