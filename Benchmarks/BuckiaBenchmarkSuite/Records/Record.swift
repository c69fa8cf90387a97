import BuckiaBenchmarks
import Foundation

/// The measured values of one comparison.
struct Record: Codable, Sendable {
  /// The number of rows that the targets are meant for.
  static let fullRows = 1_000_000

  let part: Part
  /// Its position in the suite.
  let number: Int
  /// The number of rows that the whole run was scaled to.
  let rows: Int
  let comparison: MeasuredComparison

  /// Writes the record into a folder, in place of an older one of the same comparison.
  func write(into folder: String) throws { try RecordFiles.write(self, comparison.id, into: folder) }

  /// All records of a folder, in the order of the suite; none when there is no such folder.
  static func all(in folder: String) throws -> [Record] {
    try RecordFiles.all(Record.self, in: folder).sorted { $0.number < $1.number }
  }
}

/// A comparison that could not be measured.
struct Failure: Codable, Sendable {
  let part: Part
  let title: String
  /// Why it failed.
  let reason: String

  /// Writes it into a subfolder of the records.
  func write(_ id: String, beside records: String) throws {
    try RecordFiles.write(self, id, into: Self.subfolder(of: records))
  }

  /// Removes the failure of a comparison.
  static func remove(_ id: String, beside records: String) throws {
    try FileManager.default.removeItem(at: RecordFiles.url(id, in: subfolder(of: records)))
  }

  /// All failures beside the records of a folder.
  static func all(beside records: String) throws -> [Failure] {
    try RecordFiles.all(Failure.self, in: subfolder(of: records))
  }

  private static func subfolder(of records: String) -> String { "\(records)/failures" }
}

/// JSON files in a folder, one for each comparison.
private enum RecordFiles {
  static func url(_ id: String, in folder: String) -> URL {
    URL(fileURLWithPath: folder).appendingPathComponent("\(id).json")
  }

  static func write(_ value: some Encodable, _ id: String, into folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try JSONEncoder().encode(value).write(to: url(id, in: folder), options: .atomic)
  }

  /// The values in a folder, by file name; none when there is no such folder.
  static func all<Value: Decodable>(_ type: Value.Type, in folder: String) throws -> [Value] {
    guard FileManager.default.fileExists(atPath: folder) else { return [] }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".json") }
    return try names.sorted().map { name in
      let url = URL(fileURLWithPath: folder).appendingPathComponent(name)
      return try JSONDecoder().decode(type, from: Data(contentsOf: url))
    }
  }
}
