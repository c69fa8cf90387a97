import BuckiaBytes
import SQLiteChangesets

/// A text or blob of a file that is too long to be held in memory for being looked at.
///
/// ```swift
/// try file.forEachChange { change in
///   for cell in change.new ?? [] {
///     guard let whole = cell.whole else { continue }
///     try file.forEachPiece(of: whole) { bytes in output.write(bytes) }
///   }
/// }
/// ```
public struct LongValue: Sendable {
  /// How many bytes it has: of text, its UTF-8.
  public var byteCount: Int { range.count }
  /// Where the part begins that is shown, in bytes.
  public let shownFrom: Int
  /// Where it is among the changes of its file.
  let range: Range<Int>

  init(range: Range<Int>, shownFrom: Int) {
    self.range = range
    self.shownFrom = shownFrom
  }
}

extension InspectedFile {
  /// Gives the bytes of a long value to `body`, piece by piece.
  ///
  /// - Parameters:
  ///   - value: One of this file's.
  ///   - body: Takes up to 512 KiB. It must not keep the bytes.
  /// - Throws: `BuckiaError` when a temporary file cannot be read; whatever `body` throws.
  public func forEachPiece(of value: LongValue, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    try BuckiaError.wrapping { try changeset.forEachPiece(value.range, body) }
  }

  /// Reads a part of a long value.
  ///
  /// - Parameters:
  ///   - value: One of this file's.
  ///   - offset: Where to begin, in bytes.
  ///   - buffer: What to fill.
  /// - Returns: How many bytes were read: fewer than fit only at the end of the value.
  /// - Throws: `BuckiaError` when a temporary file cannot be read.
  package func read(
    _ value: LongValue, from offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws -> Int {
    guard offset >= 0, offset < value.byteCount else { return 0 }
    let count = min(buffer.count, value.byteCount - offset)
    return try BuckiaError.wrapping {
      try changeset.read(
        into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: value.range.lowerBound + offset)
    }
  }

  /// How much of a value is shown that begins to differ far behind its beginning, and how much of that stands in front of the difference.
  private static let shownBytes = 4 << 10
  private static let bytesBefore = 256

  /// Lets both values of a cell show where they begin to differ, if that is not in the parts that they show.
  func showDifference(_ before: inout ShownChange.Cell, _ after: inout ShownChange.Cell) throws {
    guard let one = before.whole, let other = after.whole, let shown = before.value, shown == after.value else {
      return
    }
    let isText = if case .text = shown { true } else { false }
    let difference = try firstDifference(one.range, other.range)
    let start = max(0, difference - Self.bytesBefore)
    before = try part(of: before, from: start, isText: isText)
    after = try part(of: after, from: start, isText: isText)
  }

  /// The offset of the first byte in which two ranges of the changes differ; where the shorter ends if there is none.
  private func firstDifference(_ one: Range<Int>, _ other: Range<Int>) throws -> Int {
    let count = min(one.count, other.count)
    var offset = 0
    while offset < count {
      let size = min(changeset.windowBytes, count - offset)
      let (mine, theirs) = try (
        read(size, at: one.lowerBound + offset), read(size, at: other.lowerBound + offset)
      )
      var common = 0
      while common < size, mine[common] == theirs[common] { common += 1 }
      offset += common
      if common < size { break }
    }
    return offset
  }

  private func part(of cell: ShownChange.Cell, from start: Int, isText: Bool) throws -> ShownChange.Cell {
    guard let whole = cell.whole else { return cell }
    var start = min(start, whole.byteCount)
    var bytes = try read(min(Self.shownBytes, whole.byteCount - start), at: whole.range.lowerBound + start)
    guard isText else { return (cell.column, .blob(bytes), LongValue(range: whole.range, shownFrom: start)) }
    // From the beginning of a character on.
    let inside = start == 0 ? 0 : bytes.prefix(3).prefix { $0 & 0xc0 == 0x80 }.count
    bytes.removeFirst(inside)
    start += inside
    return (
      cell.column, .text(String(decoding: bytes, as: UTF8.self)), LongValue(range: whole.range, shownFrom: start)
    )
  }

  private func read(_ count: Int, at offset: Int) throws -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    defer { buffer.deallocate() }
    return try Array(buffer[..<changeset.read(into: buffer, at: offset)])
  }
}
