import BuckiaFormat
import BuckiaBytes
import BuckiaLedger

/// What a home knows of a replica, outside of its database.
struct KnownReplica: Equatable {
  /// Its present incarnation.
  let incarnation: IncarnationID
  /// How far its ledger had come when it was last seen; nil until the incarnation has been seen in a committed database.
  var progress: LedgerProgress?
  /// Where its database is: without links, from the root.
  let path: String
}

/// A line of text: the incarnation, the number of the entry and the diff that was made last, both of a fixed width so that they
/// can be replaced in place, and the path, with what would end the line or cannot be seen escaped by `%`.
extension KnownReplica {
  /// Where the progress begins in the line, in bytes.
  static let progressOffset = 2 * IncarnationID.byteCount + 1

  private static let entryDigits = 19
  private static let noEntry = String(repeating: "-", count: entryDigits)
  private static let noDiff = String(repeating: "-", count: KSUID.textLength)

  var line: String { "\(incarnation) \(Self.text(of: progress)) \(Self.escaped(path))\n" }

  /// Reads a line; nil when it is damaged.
  init?(line: [UInt8]) {
    guard let end = line.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let fields = line[..<end].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    guard fields.count == 4, let incarnation = IncarnationID(hex: fields[0]), let path = Self.unescaped(fields[3])
    else { return nil }
    self.incarnation = incarnation
    self.path = path
    if fields[1] == Self.noEntry {
      progress = nil
    } else {
      guard let entry = Int64(fields[1]), entry >= 0 else { return nil }
      let made = KSUID(fields[2])
      guard made != nil || fields[2] == Self.noDiff else { return nil }
      progress = LedgerProgress(entry: entry, made: made)
    }
  }

  static func text(of progress: LedgerProgress?) -> String {
    guard let progress else { return "\(noEntry) \(noDiff)" }
    let digits = String(progress.entry)
    let zeros = String(repeating: "0", count: entryDigits - digits.utf8.count)
    return "\(zeros)\(digits) \(progress.made?.description ?? noDiff)"
  }

  private static func escaped(_ path: String) -> String {
    var text: [UInt8] = []
    for byte in path.utf8 {
      if byte > 0x20, byte != 0x7f, byte != UInt8(ascii: "%") {
        text.append(byte)
      } else {
        let digits = Array("0123456789abcdef".utf8)
        text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func unescaped(_ text: String) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
        return nil
      }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
