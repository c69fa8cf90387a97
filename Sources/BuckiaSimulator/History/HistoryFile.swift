import BuckiaBytes

/// Where histories are kept: a JSON document that people can read, and change.
enum HistoryFile {
  /// The most bytes that a file may have.
  private static let byteLimit: Int64 = 64 << 20

  /// Writes a history, in the place of a file that is there.
  static func write(_ history: History, failing failure: String, to path: String) throws {
    let output = try AtomicFileOutput(at: path, replacing: true)
    try output.write(Array("\(history.json(failing: failure).prettyText())\n".utf8))
    try output.publish()
  }

  /// Reads a history.
  static func read(_ path: String) throws -> History {
    do {
      let file = try PosixFile(reading: path)
      guard file.initialByteCount <= byteLimit else {
        throw BuckiaError(.unsupported, "no history is this large", path: path)
      }
      let bytes = try [UInt8](unsafeUninitializedCapacity: Int(file.initialByteCount)) { buffer, count in
        count = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
      }
      return try History(JSONParser.parse(bytes))
    } catch let error as JSONError {
      throw BuckiaError(.unsupported, "this is no history of a simulation: \(error)", path: path)
    } catch {
      throw BuckiaError.wrapped(error)
    }
  }
}
