@testable import BuckiaCommand
import Testing

/// Pages for tests: one table with given entries.
enum SamplePage {
  /// A GIF of one pixel.
  static let pixel: [UInt8] =
    Array("GIF89a".utf8) + [
      1, 0, 1, 0, 0x80, 0, 0, 0xFF, 0, 0, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B,
    ]

  /// The bytes of a page.
  static func bytes(
    title: String = "Changes in a file", facts: [(name: String, value: String)] = [("file", "a.bdiff")],
    table: String = "notes", note: String = "some changes", rest: String? = nil, entries: [PageEntry]
  ) throws -> [UInt8] {
    var bytes: [UInt8] = []
    _ = try PageTarget.stream { bytes.append(contentsOf: $0) }.write { page in
      let frame = PageFrame(
        title: title, facts: facts, noun: "changes", counts: ["Inserted"],
        tables: [(table, "table-1", ["1"])], rest: rest)
      try frame.write(on: page) {
        var list = try EntryList(table, id: "table-1", note: note, versions: ["Before", "After"], on: page)
        for (place, entry) in entries.enumerated() { try list.add(entry, isReachedByTab: place == 0) }
        try list.end(rest: rest)
      }
    }
    return bytes
  }

  /// An entry of one column.
  static func entry(_ number: Int, _ before: String = "'a'", _ after: String = "'b'") -> PageEntry {
    PageEntry(
      number: Int64(number), state: .updated, label: "updated", key: "id \(number)",
      rows: [("text", [PageValue(.text, before), PageValue(.text, after)])])
  }

  /// An entry with a value of each kind, and an image.
  static func entryOfAllKinds(_ number: Int) throws -> PageEntry {
    var image = PageValue(.blob, "x'474946…' (35 bytes)")
    let shown: EmbeddedImage = try #require(EmbeddedImage(pixel))
    image.image = ("GIF image, 1 × 1, 35 bytes", shown)
    var large = PageValue(.blob, "x'ffd8…' (9.00 MB)")
    large.image = ("JPEG image, 4000 × 3000, 9.00 MB", nil)
    var long = PageValue(.text, "'aaa…'")
    long.note = "12.0 kB"
    return PageEntry(
      number: Int64(number), state: .inserted, label: "inserted", key: "id \(number)", notes: ["A note."],
      rows: [
        ("none", [PageValue(.absent, "–"), PageValue(.null, "NULL")]),
        ("number", [PageValue(.number, "-1"), PageValue(.number, "0.5")]),
        ("image", [image, large]), ("text", [long, PageValue(.text, "'line\nline'")]),
      ])
  }
}
