import BuckiaBytes

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

  /// Whether an input is text of this kind. White space before it is passed over.
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

  /// Refuses what follows the last line.
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
