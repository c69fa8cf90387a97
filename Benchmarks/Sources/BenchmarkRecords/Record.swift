import BuckiaBenchmarks
import Foundation

/// A part of the suite: one benchmark target.
public enum Part: String, Codable, CaseIterable, Sendable {
  case apply
  case folder
  case diff
  case memory
  case peer

  /// What is measured in it, as a heading.
  public var title: String {
    switch self {
    case .apply: "Applying changes"
    case .folder: "Inbound folders"
    case .diff: "Finding the difference"
    case .memory: "Memory"
    case .peer: "Against other programs"
    }
  }
}

/// One comparison of a run of the suite, as it was measured.
public struct Record: Codable, Sendable {
  /// The part it belongs to.
  public let part: Part
  /// Its place in the part.
  public let number: Int
  /// How many rows the whole suite was scaled to.
  public let rows: Int
  /// What was measured.
  public let comparison: MeasuredComparison

  /// Makes a record.
  public init(part: Part, number: Int, rows: Int, comparison: MeasuredComparison) {
    self.part = part
    self.number = number
    self.rows = rows
    self.comparison = comparison
  }

  /// Writes the record into a folder, in place of an older one of the same comparison.
  ///
  /// It is written after each round, so that an interrupted run leaves what it had.
  public func write(into folder: String) throws {
    let url = URL(fileURLWithPath: folder).appendingPathComponent("\(part.rawValue)-\(comparison.id).json")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try JSONEncoder().encode(self).write(to: url, options: .atomic)
  }

  /// All records of a folder, in the order of the suite; none when there is no such folder.
  public static func all(in folder: String) throws -> [Record] {
    guard FileManager.default.fileExists(atPath: folder) else { return [] }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".json") }
    let records = try names.map { name in
      let url = URL(fileURLWithPath: folder).appendingPathComponent(name)
      return try JSONDecoder().decode(Record.self, from: Data(contentsOf: url))
    }
    let places = Dictionary(uniqueKeysWithValues: Part.allCases.enumerated().map { ($1, $0) })
    return records.sorted { (places[$0.part, default: 0], $0.number) < (places[$1.part, default: 0], $1.number) }
  }
}

/// A comparison that could not be measured.
public struct Failure: Codable, Sendable {
  /// The part it belongs to.
  public let part: Part
  /// What was to be done.
  public let title: String
  /// Why it was not.
  public let reason: String

  /// Makes a failure.
  public init(part: Part, title: String, reason: String) {
    self.part = part
    self.title = title
    self.reason = reason
  }

  private static func subfolder(of records: String) -> String { "\(records)/failures" }

  /// Writes it down beside the records of a folder.
  public func write(beside records: String, id: String) throws {
    let folder = Self.subfolder(of: records)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let url = URL(fileURLWithPath: folder).appendingPathComponent("\(part.rawValue)-\(id).json")
    try JSONEncoder().encode(self).write(to: url, options: .atomic)
  }

  /// All failures beside the records of a folder.
  public static func all(beside records: String) throws -> [Failure] {
    let folder = subfolder(of: records)
    guard FileManager.default.fileExists(atPath: folder) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: folder).sorted().map { name in
      let url = URL(fileURLWithPath: folder).appendingPathComponent(name)
      return try JSONDecoder().decode(Failure.self, from: Data(contentsOf: url))
    }
  }
}
