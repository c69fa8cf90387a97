import BuckiaBytes

/// Writes bytes as text, in lines of 64 characters between a first and a last line that name what it is.
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
