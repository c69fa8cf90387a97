import SQLiteChangesets
import SQLiteSchemas

/// A value as a changeset encodes it, exact to the byte.
struct StoredValue: Equatable {
  let bytes: [UInt8]

  /// Takes one whole value that has been read before.
  init(_ bytes: [UInt8]) { self.bytes = bytes }

  init(_ value: ChangesetValue) {
    var writer = ChangesetWriter()
    switch value {
    case .null: writer.appendNull()
    case .integer(let number): writer.append(integer: number)
    case .real(let number): writer.append(real: number)
    case .text(let text): writer.append(text: text)
    case .blob(let bytes): writer.append(blob: bytes)
    }
    bytes = writer.bytes
  }

  /// The value for people; text that is not valid UTF-8 is repaired.
  var value: ChangesetValue {
    bytes.withRawSpan { span in
      var position = 0
      return ChangesetValue(ValueSlice(verified: span, at: &position), in: span) ?? .null
    }
  }

  var isNull: Bool { bytes.first == ValueKind.null.rawValue }

  /// Whether a column with an affinity makes this value of another one (<https://sqlite.org/datatype3.html#type_affinity>).
  ///
  /// Text that looks like a number counts as another value: a column of another type refuses it when it comes in.
  func holds(_ other: StoredValue, _ affinity: Affinity) -> Bool {
    if bytes == other.bytes { return true }
    return switch (value, other.value, affinity) {
    case (.integer(let mine), .real(let its), .integer), (.integer(let mine), .real(let its), .numeric):
      Int64(exactly: its) == mine
    case (.real(let mine), .integer(let its), .real): mine == Double(its)
    case (.real(let mine), .real(let its), .real): mine == its
    default: false
    }
  }

  /// Takes a record apart, which has a value for each column.
  static func row(_ record: [UInt8]) throws -> [StoredValue] {
    try record.withRawSpan { span in
      var values: [StoredValue] = []
      var position = 0
      while position < span.byteCount {
        values.append(StoredValue(span.array(try ValueSlice(reading: span, at: &position).encoded)))
      }
      return values
    }
  }
}
