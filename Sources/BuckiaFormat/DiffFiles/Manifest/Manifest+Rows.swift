import BuckiaBytes
import SQLiteSchemas

extension Manifest {
  /// Which rows of a table: those in some buckets, or all.
  package struct Rows: Equatable, Sendable {
    /// The stream that they are asked of; nil where they are rows of the diff's own.
    package var stream: StreamID?
    /// The table.
    package var table: String
    /// The buckets of their keys, ascending; nil for all.
    package var buckets: [UInt8]?

    /// Names rows.
    package init(of stream: StreamID? = nil, table: String, buckets: [UInt8]?) {
      self.stream = stream
      self.table = table
      self.buckets = buckets
    }
  }

  func checkRows(_ document: JSONMember) throws(DiffFileError) {
    for (field, entries) in [("requests", requests), ("resent", resent)] {
      var seen: Set<TableName> = []
      for entry in entries {
        let name = TableName(entry.table)
        guard name.refusal == nil, entry.table.utf8.count <= DiffFileLimits.nameBytes else {
          throw document.invalid(field, "names \(EscapedText.quoted(entry.table)), which cannot be part of a diff")
        }
        guard field == "requests" || seen.insert(name).inserted else {
          throw document.invalid(field, "lists \(EscapedText.quoted(entry.table)) twice", table: entry.table)
        }
      }
    }
    guard resent.isEmpty || chain != nil && kind == .delta else {
      throw document.invalid("resent", "stands in a diff that is no delta of a stream")
    }
    guard resent.isEmpty == !critical.contains("resent") else {
      throw document.invalid("resent", "must be named as critical where it stands, and nowhere else")
    }
  }
}

extension Manifest.Rows {
  var json: JSONValue {
    var object = JSONObject()
    if let stream { object.append("stream", .string(stream.description)) }
    object.append("table", .string(table))
    if let buckets { object.append("buckets", .string(HexText.lowercase(buckets))) }
    return .object(object)
  }

  init(_ value: JSONValue, at path: String, of document: JSONMember, hasStream: Bool) throws(DiffFileError) {
    var fields = try JSONFields(value, at: path, of: document)
    self.init(
      of: hasStream ? try fields.bytes("stream", as: StreamID.self) : nil, table: try fields.string("table"),
      buckets: nil)
    if let text = try fields.optionalString("buckets") {
      guard let bytes = HexText.bytes(text), !bytes.isEmpty, zip(bytes, bytes.dropFirst()).allSatisfy({ $0 < $1 })
      else {
        throw fields.invalid("buckets", "is not ascending bytes as lowercase hexadecimal digits")
      }
      buckets = bytes
    }
    try fields.finish()
  }
}

extension JSONFields {
  mutating func rows(_ name: String, haveStreams: Bool) throws(DiffFileError) -> [Manifest.Rows] {
    guard remaining[name] != nil else { return [] }
    let document = document
    return try list(name, limit: DiffFileLimits.tables) { (value, path) throws(DiffFileError) in
      try Manifest.Rows(value, at: path, of: document, hasStream: haveStreams)
    }
  }
}
