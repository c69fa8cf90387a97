import BuckiaBytes
import SQLiteSchemas

extension Manifest {
  /// The state of a table in a stream after a diff, as sums of row hashes: `Schemas/digests.md` specifies them.
  package struct State: Equatable, Sendable {
    /// The sum of some of the rows.
    package struct Bucket: Equatable, Sendable {
      /// The first byte of the key hashes of its rows.
      package let bucket: UInt8
      /// The first two bytes of the sum.
      package let beginning: [UInt8]

      /// Says how a sum begins; nil unless that is two bytes.
      package init?(_ bucket: UInt8, beginning: [UInt8]) {
        guard beginning.count == 2 else { return nil }
        self.bucket = bucket
        self.beginning = beginning
      }
    }

    /// The sum of the hashes of all rows.
    package struct Digest: FixedBytes {
      /// 16
      package static let byteCount = 16
      /// The sum, its lowest byte first.
      package let bytes: [UInt8]
      package init(checked bytes: [UInt8]) { self.bytes = bytes }
    }

    /// The table.
    package var table: String
    /// The number of rows.
    package var rows: Int64
    /// The sum of all.
    package var digest: Digest
    /// The buckets of the rows that the diff has changed, ascending; nil if unspecified.
    package var buckets: [Bucket]?

    /// Creates the state of a table.
    package init(table: String, rows: Int64, digest: Digest, buckets: [Bucket]? = nil) {
      self.table = table
      self.rows = rows
      self.digest = digest
      self.buckets = buckets
    }
  }

  func checkStates(_ document: JSONMember) throws(DiffFileError) {
    try check(states.map(\.table), in: "state", of: document)
    guard states.isEmpty || chain != nil else { throw document.invalid("state", "stands in a diff without a stream") }
  }
}

extension Manifest.State {
  var json: JSONValue {
    var object = JSONObject()
    object.append("table", .string(table))
    object.append("rows", .integer(rows))
    object.append("digest", .string(digest.description))
    if let buckets {
      object.append("buckets", .string(HexText.lowercase(buckets.flatMap { [$0.bucket] + $0.beginning })))
    }
    return .object(object)
  }

  init(reading fields: inout MemberFields) throws(DiffFileError) {
    self.init(
      table: try fields.string("table"), rows: try fields.integer("rows"),
      digest: try fields.bytes("digest", as: Digest.self))
    if let text = try fields.optionalString("buckets") { buckets = try Self.buckets(text, fields) }
  }

  private static func buckets(_ text: String, _ fields: MemberFields) throws(DiffFileError) -> [Bucket] {
    guard let bytes = HexText.bytes(text), bytes.count.isMultiple(of: 3) else {
      throw fields.invalid("buckets", "is not a multiple of three bytes as lowercase hexadecimal digits")
    }
    var found: [Bucket] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      guard let bucket = Bucket(bytes[start], beginning: Array(bytes[(start + 1)..<(start + 3)])),
        found.last.map({ $0.bucket < bucket.bucket }) ?? true
      else { throw fields.invalid("buckets", "is not ascending") }
      found.append(bucket)
    }
    return found
  }
}

extension Manifest {
  /// A part of a table's rows: some buckets, or all.
  package struct Rows: Equatable, Sendable {
    /// The stream that they are asked of; nil if they are rows of the diff's own.
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

  /// Checks the names of tables in a field.
  private func check(
    _ tables: [String], in field: String, of document: JSONMember, mayRepeat: Bool = false
  ) throws(DiffFileError) {
    var seen: Set<TableName> = []
    for table in tables {
      let name = TableName(table)
      guard name.refusal == nil, table.utf8.count <= DiffFileLimits.nameBytes else {
        throw document.invalid(field, "names \(EscapedText.quoted(table)), which cannot be part of a diff")
      }
      guard seen.insert(name).inserted || mayRepeat else {
        throw document.invalid(field, "lists \(EscapedText.quoted(table)) twice", table: table)
      }
    }
  }

  func checkRows(_ document: JSONMember) throws(DiffFileError) {
    try check(requests.map(\.table), in: "requests", of: document, mayRepeat: true)
    try check(resent.map(\.table), in: "resent", of: document)
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

  init(reading fields: inout MemberFields, hasStream: Bool) throws(DiffFileError) {
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
  }
}
