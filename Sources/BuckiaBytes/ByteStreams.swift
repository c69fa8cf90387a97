/// Bytes that are read once, from the first to the last: a file, memory, a socket, or another input with something done
/// to it.
///
/// Inputs stack. One that decrypts, decompresses or digests takes its bytes from another and puts them into the buffer
/// of its reader, so nothing but that buffer stands between two layers.
package protocol ByteInput: AnyObject {
  /// Reads the next bytes, waiting until there are some.
  ///
  /// - Parameter buffer: Where they go. It is not empty.
  /// - Returns: How many bytes were read: at least one, and fewer than fit wherever that suits the input; 0 at the end.
  /// - Throws: `ByteStreamError`. The input cannot be read any further then.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int
}

/// Bytes of which any part can be read at any time.
package protocol RandomAccessBytes: AnyObject {
  /// Reads the bytes from an offset on.
  ///
  /// - Returns: How many bytes were read: fewer than fit only where the bytes end.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) -> Int
}

/// A byte input of which any part can be read besides, without moving on.
package protocol RandomAccessInput: ByteInput, RandomAccessBytes {}

/// How many bytes are read at once where only speed matters.
package let streamChunkBytes = 128 << 10

extension ByteInput {
  /// Reads until a buffer is full or the input ends.
  ///
  /// - Returns: How many bytes were read: fewer than fit only where the input ends.
  package func readFully(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    var filled = 0
    while filled < buffer.count {
      let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Reads all bytes that follow; nil when they are more than a limit.
  ///
  /// - Throws: What `read` throws.
  package func contents(limit: Int) throws -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: min(limit + 1, 1 << 16))
    while bytes.count <= limit {
      let count = try buffer.withUnsafeMutableBytes { try readFully(into: $0) }
      bytes += buffer[..<count]
      if count < buffer.count { return bytes.count <= limit ? bytes : nil }
    }
    return nil
  }
}

/// Where bytes are written, one piece after the other: a file, memory, a socket, or another output that gets something
/// made of them.
///
/// An output that has to write something at the end, such as a checksum, has a call of its own for that.
package protocol ByteOutput: AnyObject {
  /// Writes all of the bytes.
  ///
  /// - Throws: `ByteStreamError`. Some of the bytes may have been written then, and nothing can follow them.
  func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError)
}

extension ByteOutput {
  /// Writes all of the bytes.
  package func write(_ bytes: [UInt8]) throws(ByteStreamError) {
    try bytes.withUnsafeBufferPointer { (buffer) throws(ByteStreamError) in
      try write(UnsafeRawBufferPointer(buffer))
    }
  }

  /// Writes all of the bytes.
  package func write(_ bytes: RawSpan) throws(ByteStreamError) {
    try bytes.withUnsafeBytes { (buffer) throws(ByteStreamError) in try write(buffer) }
  }
}

/// Why bytes could not be read or written.
package struct ByteStreamError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What went wrong. The set is open: a layer that decompresses or decrypts has codes of its own.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    /// The code of a system's error number, or another when that says nothing particular.
    package init(errno number: Int32, otherwise: Code) {
      self =
        switch number {
        case ENOSPC, EDQUOT: .fullDisk
        case EMFILE, ENFILE: .tooManyOpenFiles
        case ENOMEM: .outOfMemory
        case EEXIST: .alreadyExists
        default: otherwise
        }
    }
  }

  package let code: Code
  /// What could not be done or what was found instead, as in "it cannot be opened".
  package let action: String
  /// The file, when it has a name that people know.
  package var path: String?
  /// Where, in bytes from 0 of the innermost input.
  package var offset: Int64?
  /// The system's error number, when a call failed.
  package let errno: Int32?

  package init(_ code: Code, _ action: String, path: String? = nil, offset: Int64? = nil) {
    self.code = code
    self.action = action
    self.path = path
    self.offset = offset
    errno = nil
  }

  /// A system call failed.
  ///
  /// - Parameter otherwise: The code when the error number says nothing particular.
  package init(_ action: String, errno number: Int32, path: String?, otherwise: Code) {
    code = Code(errno: number, otherwise: otherwise)
    self.action = action
    self.path = path
    errno = number
  }

  /// True if there is no file of that name, or no folder that it could be in.
  package var isMissingFile: Bool { errno == ENOENT || errno == ENOTDIR }

  /// What happened and the system's reason, without the file.
  package var message: String { errno.map { "\(action): \(String(cString: strerror($0)))" } ?? action }

  package var description: String {
    (path.map { "\($0): " } ?? "") + message + (offset.map { " (at byte \($0))" } ?? "") + (advice ?? "")
  }

  private var advice: String? {
    guard code == .fullDisk else { return nil }
    // Only temporary files have no name.
    return "; free some space" + (path == nil ? " or set TMPDIR to a larger volume" : " and try again")
  }
}

extension ByteStreamError.Code {
  /// It is a link, a folder, a pipe, a device or a socket.
  package static let notRegularFile = Self(rawValue: "notRegularFile")
  /// The system does not let us read it.
  package static let unreadable = Self(rawValue: "unreadable")
  /// The system does not let us write there.
  package static let unwritable = Self(rawValue: "unwritable")
  /// A file of that name exists.
  package static let alreadyExists = Self(rawValue: "alreadyExists")
  /// The volume or the user's quota is full.
  package static let fullDisk = Self(rawValue: "fullDisk")
  /// The process or the system has too many files open.
  package static let tooManyOpenFiles = Self(rawValue: "tooManyOpenFiles")
  /// No memory.
  package static let outOfMemory = Self(rawValue: "outOfMemory")
}

/// Reads bytes of which any part can be read, from the first to the last: each reading of the same bytes has an input of its
/// own, and none moves another.
package final class PositionedInput: RandomAccessInput {
  private let bytes: any RandomAccessBytes
  private var position: Int

  /// Begins at an offset in some bytes, which must not change any more.
  package init(_ bytes: any RandomAccessBytes, from offset: Int = 0) {
    self.bytes = bytes
    position = offset
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    let count = try bytes.read(into: buffer, at: position)
    position += count
    return count
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) -> Int {
    try bytes.read(into: buffer, at: offset)
  }
}

/// An input that tells how far it has been read.
package final class ObservedInput: RandomAccessInput {
  private let input: any RandomAccessInput
  private let observe: (Int) -> Void
  private var byteCount = 0

  /// - Parameters:
  ///   - input: An input of which nothing has been read.
  ///   - observe: Is called with the number of bytes that have been read, after each reading that moves on.
  package init(_ input: any RandomAccessInput, _ observe: @escaping (Int) -> Void) {
    self.input = input
    self.observe = observe
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    let count = try input.read(into: buffer)
    byteCount += count
    observe(byteCount)
    return count
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) -> Int {
    try input.read(into: buffer, at: offset)
  }
}

/// A hash function that takes bytes piece by piece.
///
/// A protocol, so that this module needs no library for cryptography.
package protocol ByteHasher {
  mutating func update(_ bytes: UnsafeRawBufferPointer)
}

/// Hands on the bytes of another input, and counts and hashes them.
package final class DigestingInput<Hasher: ByteHasher>: ByteInput {
  private let source: any ByteInput
  /// Everything that has been read so far.
  package private(set) var hasher: Hasher
  /// How many bytes have been read so far.
  package private(set) var byteCount: Int64 = 0

  package init(_ source: any ByteInput, _ hasher: Hasher) {
    self.source = source
    self.hasher = hasher
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    let count = try source.read(into: buffer)
    hasher.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    byteCount += Int64(count)
    return count
  }
}

/// Hands on bytes to another output, and counts and hashes them.
package final class DigestingOutput<Hasher: ByteHasher>: ByteOutput {
  private let target: any ByteOutput
  /// Everything that has been written so far.
  package private(set) var hasher: Hasher
  /// How many bytes have been written so far.
  package private(set) var byteCount: Int64 = 0

  package init(_ target: any ByteOutput, _ hasher: Hasher) {
    self.target = target
    self.hasher = hasher
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    try target.write(bytes)
    hasher.update(bytes)
    byteCount += Int64(bytes.count)
  }
}
