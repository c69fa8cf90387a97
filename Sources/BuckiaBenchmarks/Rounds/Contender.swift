/// What one of those who do the same work is called, in tables and in the figures that compare them.
public struct ContenderName: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible,
  ExpressibleByStringLiteral
{
  /// The name as people read it.
  public let rawValue: String

  /// Takes a name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Takes a name.
  public init(stringLiteral value: String) { rawValue = value }

  /// The name as people read it.
  public var description: String { rawValue }

  /// Buckia, doing the whole job: plan, conflicts, ledger.
  public static let buckia: ContenderName = "Buckia"
  /// SQLite's own call on what its session extension recorded.
  public static let stock: ContenderName = "sqlite3changeset_apply_v2"
}

/// One of those who do the same work.
public struct Contender {
  /// What it is called.
  public let name: ContenderName
  /// Whether it is Buckia: the one that the others are there to be compared with.
  public let isSubject: Bool
  private let makeTrial: (ScratchFolder) throws -> any Trial

  /// Makes a contender.
  ///
  /// - Parameters:
  ///   - name: What it is called.
  ///   - isSubject: Whether it is Buckia.
  ///   - trial: Prepares one run in a folder of its own. Not timed.
  public init(_ name: ContenderName, isSubject: Bool = false, trial: @escaping (ScratchFolder) throws -> any Trial) {
    self.name = name
    self.isSubject = isSubject
    makeTrial = trial
  }

  func trial(in folder: ScratchFolder) throws -> any Trial { try makeTrial(folder) }
}

/// One run of a contender, prepared.
public protocol Trial: AnyObject {
  /// Does the work.
  ///
  /// - Returns: What was measured, for work that is not judged by the time until it returns; else nil.
  func run() throws -> Double?

  /// What the work arrived at, the same number for the same rows; nil for work that makes none.
  func content() throws -> UInt64?
}
