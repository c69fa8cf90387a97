import BuckiaBytes
import SQLiteSchemas

/// HTML for a page, in which all text is escaped.
///
/// Only literals of the source are used verbatim; interpolated text is escaped, and therefore neither becomes an
/// element nor ends an attribute. There is no way to create markup from a `String` that is only known at run time,
/// other than as text.
///
/// ```swift
/// let cell: Markup = "<td title=\"\(name)\">\(value)</td>"
/// ```
///
/// Control and bidirectional characters are shown by their numbers, as by the command. Values of attributes have to be
/// in double quotes, and elements have to be closed: the result is both HTML and XML.
struct Markup: ExpressibleByStringInterpolation, Sendable {
  typealias StringLiteralType = StaticString

  /// The bytes, in UTF-8.
  private(set) var utf8: [UInt8]

  /// Markup that is written down in the source.
  init(stringLiteral value: StaticString) { utf8 = value.withUTF8Buffer { Array($0) } }

  /// Markup with text in it.
  init(stringInterpolation: StringInterpolation) { utf8 = stringInterpolation.utf8 }

  /// The markup of items, one after the other.
  init<Item>(_ items: some Sequence<Item>, _ markup: (Item) throws -> Markup) rethrows {
    utf8 = try items.flatMap { try markup($0).utf8 }
  }

  /// Nothing but text.
  init(text: some StringProtocol) {
    utf8 = []
    Self.append(text, to: &utf8)
  }

  /// Text of several lines: each line end is shown, and breaks the line.
  init(lines text: some StringProtocol) { self.init(lines: text, endedBy: #"\n<br />"#) }

  /// Text of several lines for an element in which they stay lines.
  init(preformatted text: some StringProtocol) { self.init(lines: text, endedBy: "\n") }

  private init(lines text: some StringProtocol, endedBy lineEnd: StaticString) {
    utf8 = []
    // By bytes: a line end can be a part of a character.
    for (place, line) in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      if place > 0 { lineEnd.withUTF8Buffer { utf8.append(contentsOf: $0) } }
      Self.append(String(decoding: line, as: UTF8.self), to: &utf8)
    }
  }

  /// Verbatim text of this module: the style sheet and the script.
  init(verbatim text: String) { utf8 = Array(text.utf8) }

  /// Adds markup at the end.
  static func += (left: inout Markup, right: Markup) { left.utf8.append(contentsOf: right.utf8) }

  /// Markup while it is put together.
  struct StringInterpolation: StringInterpolationProtocol {
    typealias StringLiteralType = StaticString

    fileprivate var utf8: [UInt8] = []

    init(literalCapacity: Int, interpolationCount: Int) {
      utf8.reserveCapacity(literalCapacity + 16 * interpolationCount)
    }

    mutating func appendLiteral(_ literal: StaticString) {
      literal.withUTF8Buffer { utf8.append(contentsOf: $0) }
    }

    /// Puts text in.
    mutating func appendInterpolation(_ text: some StringProtocol) { Markup.append(text, to: &utf8) }

    /// Puts a number in.
    mutating func appendInterpolation(_ number: some BinaryInteger) {
      utf8.append(contentsOf: String(number).utf8)
    }

    /// Puts markup in.
    mutating func appendInterpolation(_ markup: Markup) { utf8.append(contentsOf: markup.utf8) }
  }

  // MARK: Escaping

  fileprivate static func append(_ text: some StringProtocol, to utf8: inout [UInt8]) {
    // Most text is plain, and then there is nothing to be looked up about its characters.
    if text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) {
      append(visible: text.utf8, to: &utf8)
    } else {
      append(visible: text.escaped.utf8, to: &utf8)
    }
  }

  /// Adds text in which every character may be shown.
  private static func append(visible text: some Sequence<UInt8>, to utf8: inout [UInt8]) {
    for byte in text {
      switch byte {
      case UInt8(ascii: "&"): utf8.append(contentsOf: "&amp;".utf8)
      case UInt8(ascii: "<"): utf8.append(contentsOf: "&lt;".utf8)
      case UInt8(ascii: ">"): utf8.append(contentsOf: "&gt;".utf8)
      case UInt8(ascii: "\""): utf8.append(contentsOf: "&quot;".utf8)
      case UInt8(ascii: "'"): utf8.append(contentsOf: "&#39;".utf8)
      default: utf8.append(byte)
      }
    }
  }
}

/// Writes a page while its contents are being read: it is never held whole.
final class PageWriter {
  private let output: (UnsafeRawBufferPointer) throws -> Void
  private var pending: [UInt8] = []
  /// The number of bytes that are collected before they are passed on.
  private static let pieceBytes = 64 << 10

  /// The number of written bytes.
  private(set) var byteCount: Int64 = 0

  /// - Parameter output: Receives the bytes, piece by piece.
  init(_ output: @escaping (UnsafeRawBufferPointer) throws -> Void) { self.output = output }

  /// Writes markup.
  ///
  /// - Throws: What the output throws.
  func write(_ markup: Markup) throws {
    byteCount += Int64(markup.utf8.count)
    pending.append(contentsOf: markup.utf8)
    if pending.count >= Self.pieceBytes { try flush() }
  }

  /// Hands on everything that was written.
  ///
  /// - Throws: What the output throws.
  func flush() throws {
    try pending.withUnsafeBytes { try output($0) }
    pending.removeAll(keepingCapacity: true)
  }
}

/// The target of a page.
enum PageTarget {
  /// Into a file, which appears complete or not at all.
  ///
  /// - Parameter isPrivate: True if only its owner may read it.
  case file(String, isReplacing: Bool, isPrivate: Bool = false)
  /// To a closure that gets the bytes piece by piece.
  case stream((UnsafeRawBufferPointer) throws -> Void)

  /// Writes a page.
  ///
  /// - Parameter body: Writes everything. If it throws there is no file; bytes in a stream cannot be removed.
  /// - Returns: The number of bytes.
  /// - Throws: What `body` throws; `ByteStreamError`, with the code `alreadyExists` where a file has the name and may not be replaced;
  ///   what the closure of a stream throws.
  func write(_ body: (PageWriter) throws -> Void) throws -> Int64 {
    switch self {
    case .file(let path, let isReplacing, let isPrivate):
      let file = try AtomicFileOutput(at: path, replacing: isReplacing, followingLinks: true, isPrivate: isPrivate)
      let page = PageWriter { try file.write($0) }
      try body(page)
      try page.flush()
      try file.publish()
      return page.byteCount
    case .stream(let closure):
      let page = PageWriter(closure)
      try body(page)
      try page.flush()
      return page.byteCount
    }
  }
}
