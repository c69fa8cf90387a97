import SQLiteChangesets
import Testing

@Suite("ChangesetReader")
struct ChangesetReaderTests {
  /// The format byte by byte, so that reader and writer cannot be wrong together.
  private let spelledOut: [UInt8] = [
    0x54, 2, 1, 0, 0x74, 0,  // table: T, two columns, the first is the key, name "t"
    18, 0,  // INSERT, direct
    1, 0, 0, 0, 0, 0, 0, 0, 7,  // integer 7
    3, 2, 0x68, 0x69,  // text "hi"
    23, 1,  // UPDATE, indirect
    1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0,  // old: -1, 1.5
    0, 5,  // new: unchanged, NULL
    9, 0,  // DELETE, direct
    4, 1, 0xab, 4, 0,  // two blobs, the second one empty
  ]

  @Test("every kind of change and value is read as the format says")
  func spelledOutBytes() throws {
    #expect(
      try lines(spelledOut) == [
        "t INSERT - | 7 'hi'", "t UPDATE* | -1 1.5 | . NULL", "t DELETE | x[171] x[] -",
      ])
  }

  @Test("the writer writes these bytes")
  func writer() {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0]))
    writer.append(.insert([7, "hi"]))
    writer.append(.update(old: [-1, 1.5], new: [.undefined, nil], indirect: true))
    writer.append(.delete([[0xab], []]))
    #expect(writer.bytes == spelledOut)
  }

  @Test("a change has its range and that of its table's header")
  func places() throws {
    let bytes = spelledOut + spelledOut
    try bytes.withRawSpan { span in
      var reader = ChangesetReader()
      var changes: [Change] = []
      var headers: [Range<Int>] = []
      while let change = try reader.next(in: span) {
        changes.append(change)
        headers.append(reader.headerRange)
        #expect(span.array(reader.nameRange) == Array("t".utf8))
      }
      #expect(changes.map(\.startsTable) == [true, false, false, true, false, false])
      #expect(changes.map(\.range.lowerBound) == [6, 21, 43, 56, 71, 93])
      #expect(headers == [0..<6, 0..<6, 0..<6, 50..<56, 50..<56, 50..<56])
      #expect(reader.position == bytes.count)
    }
  }

  @Test("patchsets contain the key of an UPDATE in its one record, and only the key of a DELETE")
  func patchset() throws {
    let bytes = changeset(
      key: [0, 1, 0], format: .patchset, .patchUpdate(["x", 1, .undefined]), .patchDelete([2]),
      .insert([nil, 3, "y"]))
    #expect(
      try lines(bytes) == [
        "notes UPDATE | . 1 . | 'x' . .", "notes DELETE | . 2 . -", "notes INSERT - | NULL 3 'y'",
      ])
  }

  @Test("tables without changes, many columns and lengths of several bytes are read")
  func sizes() throws {
    let text = String(repeating: "ä", count: 10_000)
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "empty", keyFlags: [1]))
    writer.beginTable(ChangesetTable(name: "wide", keyFlags: [1] + Array(repeating: 0, count: 299)))
    writer.append(.insert([1] + Array(repeating: .text(text), count: 299)))
    let bytes = writer.bytes
    try bytes.withRawSpan { span in
      var reader = ChangesetReader()
      let change = try #require(try reader.next(in: span))
      #expect(change.startsTable)
      #expect(reader.table?.columnCount == 300)
      #expect(ChangesetValue(reader.new[299], in: span) == .text(text))
      #expect(try reader.next(in: span) == nil)
      #expect(try reader.next(in: span) == nil)
    }
  }

  @Test("no bytes, and headers alone, contain no changes")
  func empty() throws {
    #expect(try lines([]) == [])
    #expect(try lines(changeset()) == [])
    #expect(try lines(changeset() + changeset("other")) == [])
  }

  @Test("a key that SQLite replaced by an equal one is left out, as is an old value without a new one")
  func normalised() throws {
    let bytes = changeset(
      key: [1, 0, 0], .update(old: [1, 5, "stays"], new: [1.0, 6, .undefined]))
    #expect(try lines(bytes) == ["notes UPDATE | 1 5 . | . 6 ."])
  }

  struct BadBytes: Sendable, CustomTestStringConvertible {
    let name: String
    let code: ChangesetError.Code
    let offset: Int
    let bytes: [UInt8]
    var testDescription: String { name }
  }

  private static let header: [UInt8] = [0x54, 2, 1, 0, 0x74, 0]

  static let bad: [BadBytes] = [
    BadBytes(name: "change first", code: .changeBeforeTable, offset: 0, bytes: [18, 0, 5, 5]),
    BadBytes(name: "unknown operation", code: .unknownOperation, offset: 6, bytes: header + [17, 0]),
    BadBytes(name: "text", code: .unknownOperation, offset: 0, bytes: Array("SQLite format 3".utf8)),
    BadBytes(name: "operation alone", code: .truncated, offset: 6, bytes: header + [18]),
    BadBytes(name: "header alone", code: .truncated, offset: 1, bytes: [0x54]),
    BadBytes(name: "flags cut short", code: .truncated, offset: 0, bytes: [0x54, 3, 1, 0]),
    BadBytes(name: "name without end", code: .truncated, offset: 0, bytes: [0x54, 1, 1, 0x74]),
    BadBytes(name: "no columns", code: .badColumnCount, offset: 0, bytes: [0x54, 0, 0x74, 0]),
    BadBytes(name: "65,537 columns", code: .badColumnCount, offset: 0, bytes: [0x54, 0x84, 0x80, 0x01]),
    BadBytes(
      name: "2^64 - 1 columns", code: .badColumnCount, offset: 0,
      bytes: [0x54] + [UInt8](repeating: 0xff, count: 9)),
    BadBytes(name: "no key", code: .missingKey, offset: 0, bytes: [0x54, 2, 0, 0, 0x74, 0, 18, 0, 5, 5]),
    BadBytes(
      name: "endless name", code: .badLength, offset: 0,
      bytes: [0x54, 1, 1] + [UInt8](repeating: 0x61, count: 70_000) + [0]),
    BadBytes(name: "unknown kind", code: .unknownValueKind, offset: 9, bytes: header + [18, 0, 5, 6]),
    BadBytes(
      name: "integer cut short", code: .truncated, offset: 8, bytes: header + [18, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
    BadBytes(name: "text cut short", code: .truncated, offset: 9, bytes: header + [18, 0, 5, 3, 4, 0x61]),
    BadBytes(name: "length cut short", code: .truncated, offset: 9, bytes: header + [18, 0, 5, 3, 0x84]),
    BadBytes(
      name: "length of 2^31", code: .badLength, offset: 9,
      bytes: header + [18, 0, 5, 4, 0x88, 0x80, 0x80, 0x80, 0x00]),
    BadBytes(
      name: "length of 2^64 - 1", code: .badLength, offset: 9,
      bytes: header + [18, 0, 5, 4] + [UInt8](repeating: 0xff, count: 9)),
    BadBytes(name: "INSERT with a hole", code: .misplacedValue, offset: 6, bytes: header + [18, 0, 5, 0]),
    BadBytes(name: "DELETE with a hole", code: .misplacedValue, offset: 6, bytes: header + [9, 0, 5, 0]),
    BadBytes(
      name: "UPDATE without key", code: .misplacedValue, offset: 6, bytes: header + [23, 0, 0, 5, 0, 5]),
    BadBytes(
      name: "patchset behind changeset", code: .mixedFormats, offset: 10,
      bytes: header + [18, 0, 5, 5, 0x50, 1, 1, 0x74, 0]),
    BadBytes(
      name: "patchset DELETE without key", code: .misplacedValue, offset: 6,
      bytes: [0x50, 2, 1, 0, 0x74, 0, 9, 0, 0]),
    BadBytes(
      name: "patchset UPDATE without key", code: .misplacedValue, offset: 6,
      bytes: [0x50, 2, 1, 0, 0x74, 0, 23, 0, 0, 5]),
  ]

  @Test("bytes that are no changeset are refused at the offset of the fault", arguments: bad)
  func refusal(_ bad: BadBytes) {
    let error = changesetError { _ = try lines(bad.bytes) }
    #expect(error?.code == bad.code)
    #expect(error?.offset == bad.offset)
  }

  @Test("errors are sentences with offset and table")
  func errorText() {
    #expect(
      changesetError { _ = try lines(changeset("things") + [18]) }?.description
        == "the changeset ends too early (at byte 11, in the changes of table \"things\")")
    #expect(
      ChangesetError(.needsChangeset, offset: 0).description
        == "this needs a changeset, and a patchset has no old values (at byte 0)")
    let codes: [ChangesetError.Code] = [
      .truncated, .unknownOperation, .unknownValueKind, .badColumnCount, .missingKey, .badLength, .changeBeforeTable,
      .mixedFormats, .misplacedValue, .incompatibleTables, .needsChangeset,
    ]
    #expect(Set(codes.map { ChangesetError($0, offset: 1).description }).count == codes.count)
  }
}
