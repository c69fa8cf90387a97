import BuckiaBytes

/// The lines around encrypted bytes that are written as text: <https://www.rfc-editor.org/rfc/rfc7468.html>.
enum Armor {
  static let begin = Array("-----BEGIN AGE ENCRYPTED FILE-----".utf8)
  static let end = Array("-----END AGE ENCRYPTED FILE-----".utf8)
  /// The maximum white space before them, and the same after them.
  static let maximumWhitespace = 1024

  /// True if a byte is white space.
  static func isWhitespace(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }
}

/// Writes bytes as text: lines of 64 characters between a BEGIN and an END line.
package final class ArmoringOutput: ByteOutput {
  private let output: any ByteOutput
  /// What does not fill a line yet.
  private var pending: [UInt8] = []
  private var text: [UInt8]
  private var isFinished = false

  package init(_ output: any ByteOutput) {
    self.output = output
    text = Armor.begin + [UInt8(ascii: "\n")]
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    guard !isFinished else { throw Self.alreadyFinished }
    var rest = bytes[...]
    if !pending.isEmpty {
      let count = min(rest.count, Base64.lineBytes - pending.count)
      pending += rest.prefix(count)
      rest = rest.dropFirst(count)
      guard pending.count == Base64.lineBytes else { return }
      add(pending[...])
      pending.removeAll(keepingCapacity: true)
    }
    while rest.count >= Base64.lineBytes {
      add(rest.prefix(Base64.lineBytes))
      rest = rest.dropFirst(Base64.lineBytes)
    }
    pending += rest
    if text.count >= 1 << 15 { try flush() }
  }

  /// Writes the last line. Nothing can be written after it.
  ///
  /// - Throws: `ByteStreamError` with code `alreadyFinished` when it was called before, or what the output throws.
  package func finish() throws(ByteStreamError) {
    guard !isFinished else { throw Self.alreadyFinished }
    isFinished = true
    if !pending.isEmpty { add(pending[...]) }
    text += Armor.end + [UInt8(ascii: "\n")]
    try flush()
  }

  private func add(_ line: some Collection<UInt8>) {
    text += Base64.encodePadded(line)
    text.append(UInt8(ascii: "\n"))
  }

  private func flush() throws(ByteStreamError) {
    try output.write(text)
    text.removeAll(keepingCapacity: true)
  }

  private static let alreadyFinished = ByteStreamError(.alreadyFinished, "its last line is written already")
}

/// Reads bytes that are written as text, as strictly as a header: there is one way to write them, but for the ends of lines
/// (LF or CRLF) and white space around the whole.
final class DearmoringInput: ByteInput {
  private let input: LineInput
  private var line: [UInt8] = []
  private var bytes: [UInt8] = []
  private var position = 0
  private var isStarted = false
  private var isEnded = false
  private var failure: ByteStreamError?

  init(_ input: LineInput) { self.input = input }

  /// True if an input is text of this kind. White space before it is passed over.
  ///
  /// - Throws: `ByteStreamError` when there is more white space than may be, or what the input throws.
  static func isArmored(_ input: LineInput) throws(ByteStreamError) -> Bool {
    var skipped = 0
    while let byte = try input.peek(), Armor.isWhitespace(byte) {
      skipped += 1
      guard skipped <= Armor.maximumWhitespace else { throw malformed("there is too much white space before it") }
      input.skip()
    }
    guard let byte = try input.peek() else { return skipped > 0 }
    return byte == UInt8(ascii: "-") || skipped > 0
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    if let failure { throw failure }
    do {
      if position == bytes.count { try refill() }
    } catch {
      failure = error
      throw error
    }
    let count = min(buffer.count, bytes.count - position)
    bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<position + count])) }
    position += count
    return count
  }

  /// Reads some lines.
  private func refill() throws(ByteStreamError) {
    position = 0
    bytes.removeAll(keepingCapacity: true)
    if !isStarted {
      try readLine()
      guard line == Armor.begin else { throw Self.malformed("its first line is not as it must be") }
      isStarted = true
    }
    while !isEnded, bytes.count < 1 << 13 {
      try readLine()
      if line == Armor.end {
        try readEnd()
        return
      }
      let before = bytes.count
      guard !line.isEmpty, line.count <= Base64.lineLength, Base64.decodePadded(line, into: &bytes) else {
        throw Self.malformed("a line is not as it must be")
      }
      guard bytes.count - before < Base64.lineBytes else { continue }
      // Only the last line may be shorter.
      try readLine()
      guard line == Armor.end else { throw Self.malformed("a line is too short") }
      try readEnd()
    }
  }

  /// Throws if anything follows the last line.
  private func readEnd() throws(ByteStreamError) {
    isEnded = true
    var count = 0
    while let byte = try input.peek() {
      count += 1
      guard Armor.isWhitespace(byte), count <= Armor.maximumWhitespace else {
        throw Self.malformed("something follows its last line")
      }
      input.skip()
    }
  }

  private func readLine() throws(ByteStreamError) {
    switch try input.readLine(into: &line, limit: 128) {
    case .newline: break
    case .end where line == Armor.end: break
    case .end: throw Self.malformed("it is cut off")
    case .tooLong: throw Self.malformed("a line is too long")
    }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
  }

  private static func malformed(_ what: String) -> ByteStreamError {
    ByteStreamError(.malformedArmor, "its text is damaged: \(what)")
  }
}

/// Reads lines at the beginning of an input, and then the remaining bytes unchanged.
final class LineInput: ByteInput {
  /// How a line ended.
  enum Ending {
    /// With a line feed.
    case newline
    /// The input ended.
    case end
    /// The line is longer than it may be, and was not read to its end.
    case tooLong
  }

  private let source: any ByteInput
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)
  private var start = 0
  private var end = 0

  init(_ source: any ByteInput) { self.source = source }

  deinit { buffer.deallocate() }

  /// Reads up to the next line feed.
  ///
  /// - Parameters:
  ///   - line: Becomes the line, without the line feed.
  ///   - limit: The maximum length in bytes.
  func readLine(into line: inout [UInt8], limit: Int) throws(ByteStreamError) -> Ending {
    line.removeAll(keepingCapacity: true)
    while try fill() {
      let pending = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
      let newline = pending.firstIndex(of: UInt8(ascii: "\n"))
      let count = newline ?? pending.count
      guard line.count + count <= limit else { return .tooLong }
      line.append(contentsOf: pending[..<count])
      start += count
      if newline != nil {
        start += 1
        return .newline
      }
    }
    return .end
  }

  /// The next byte, which stays the next; nil at the end.
  func peek() throws(ByteStreamError) -> UInt8? { try fill() ? buffer[start] : nil }

  /// Moves past the byte that ``peek()`` has shown.
  func skip() { start += 1 }

  func read(into target: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    // Much is read past the buffer.
    if start == end, target.count >= buffer.count { return try source.read(into: target) }
    guard try fill() else { return 0 }
    let count = min(target.count, end - start)
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<start + count]))
    start += count
    return count
  }

  /// True if a byte is there.
  private func fill() throws(ByteStreamError) -> Bool {
    guard start == end else { return true }
    start = 0
    end = try source.read(into: buffer)
    return end > 0
  }
}
