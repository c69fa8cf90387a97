import Buckia

/// Prints a change with long values as JSON, piece by piece: the values need not fit in memory.
struct LongChangeWriter {
  private let file: InspectedFile
  private let console: Console

  /// - Parameter file: The file that the change is of.
  init(_ file: InspectedFile, on console: Console) {
    self.file = file
    self.console = console
  }

  /// Prints a change on one line, as `json` would be.
  func write(_ change: InspectedFile.ShownChange) throws {
    let (table, operation) = (JSONValue.string(change.table), JSONValue.string(change.operation.word))
    try console.write("{\"table\":\(table.lineText()),\"op\":\(operation.lineText())")
    for (name, cells) in [("key", change.key), ("old", change.old), ("new", change.new)] {
      try console.write(",\"\(name)\":")
      if let cells { try write(cells) } else { try console.write("null") }
    }
    try console.write("}")
  }

  private func write(_ cells: [InspectedFile.ShownChange.Cell]) throws {
    var separator = "{"
    for cell in cells {
      guard let value = cell.value else { continue }
      try console.write("\(separator)\(JSONValue.string(cell.column).lineText()):")
      separator = ","
      switch (value, cell.whole) {
      case (.text, let whole?): try writeText(whole)
      case (_, let whole?): try writeBlob(whole)
      case (_, nil): try console.write(value.json.lineText())
      }
    }
    try console.write(separator == "{" ? "{}" : "}")
  }

  private func writeBlob(_ value: LongValue) throws {
    try console.write("{\"blob\":\"")
    try file.forEachPiece(of: value) { try console.write(HexText.lowercase($0)) }
    try console.write("\"}")
  }

  private func writeText(_ value: LongValue) throws {
    try console.write("\"")
    var rest: [UInt8] = []
    try file.forEachPiece(of: value) { piece in
      rest.append(contentsOf: piece)
      let end = rest.count - Self.openCharacter(in: rest)
      try writeText(rest[..<end])
      rest.removeSubrange(..<end)
    }
    try writeText(rest[...])
    try console.write("\"")
  }

  private func writeText(_ bytes: ArraySlice<UInt8>) throws {
    try console.write(
      String(JSONValue.string(String(decoding: bytes, as: UTF8.self)).lineText().dropFirst().dropLast()))
  }

  /// How many bytes at the end of a piece are the beginning of a character that goes on in the next one.
  private static func openCharacter(in bytes: [UInt8]) -> Int {
    for count in 1...3 where count <= bytes.count {
      let byte = bytes[bytes.count - count]
      if byte & 0xc0 == 0x80 { continue }
      let length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
      return length > count ? count : 0
    }
    return 0
  }
}
