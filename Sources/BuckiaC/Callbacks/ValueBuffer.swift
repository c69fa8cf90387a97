import Buckia
import CBuckia

/// Copies of values as C reads them, with the bytes of their texts and blobs.
struct ValueBuffer {
  private var values: [buckia_value] = []
  /// Where the bytes of each value begin in `bytes`; nil where it has none.
  private var places: [Int?] = []
  private var bytes: [UInt8] = []

  /// How many values there are.
  var count: Int { values.count }

  /// Adds a value; nil where there is none.
  mutating func append(_ value: ChangesetValue?) {
    var copy = buckia_value()
    var place: Int?
    switch value {
    case nil: copy.type = BUCKIA_NONE
    case .null?: copy.type = BUCKIA_NULL
    case .integer(let number)?:
      copy.type = BUCKIA_INTEGER
      copy.integer = number
    case .real(let number)?:
      copy.type = BUCKIA_REAL
      copy.real = number
    case .text(let text)?:
      copy.type = BUCKIA_TEXT
      place = append(text.utf8, to: &copy)
    case .blob(let blob)?:
      copy.type = BUCKIA_BLOB
      place = append(blob, to: &copy)
    }
    values.append(copy)
    places.append(place)
  }

  private mutating func append(_ content: some Collection<UInt8>, to value: inout buckia_value) -> Int {
    let place = bytes.count
    bytes.append(contentsOf: content)
    value.length = bytes.count - place
    value.whole_length = Int64(value.length)
    return place
  }

  mutating func removeAll() {
    values.removeAll(keepingCapacity: true)
    places.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
  }

  /// Gives the values to `body`, which must not keep them.
  mutating func withValues<Result>(_ body: (UnsafePointer<buckia_value>?) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes { bytes in
      for (index, place) in places.enumerated() {
        // No pointer for bytes that are not there.
        if let place, let start = bytes.baseAddress { values[index].bytes = start + place }
      }
      return try values.withUnsafeBufferPointer { try body($0.baseAddress) }
    }
  }
}
