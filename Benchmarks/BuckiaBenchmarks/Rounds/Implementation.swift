/// The name of an implementation, in tables and in the figures that compare two of them.
package struct ImplementationName: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible,
  ExpressibleByStringLiteral
{
  package let rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  package init(stringLiteral value: String) { rawValue = value }

  package var description: String { rawValue }

  /// Buckia, with schema plan, conflict handling and ledger.
  package static let buckia: ImplementationName = "Buckia"
  /// SQLite's own call on the changeset that its session extension recorded.
  package static let stock: ImplementationName = "sqlite3changeset_apply_v2"
}

/// One of several ways to do the same work: Buckia's or one it is compared with.
package struct Implementation {
  /// Its name.
  package let name: ImplementationName
  /// True if it is Buckia, the subject of the benchmark.
  package let isSubject: Bool
  private let makeRun: (ScratchFolder) throws -> any PreparedRun

  /// Makes an implementation.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - isSubject: True if it is Buckia.
  ///   - prepare: Prepares one run in a folder of its own. Not timed.
  package init(
    _ name: ImplementationName, isSubject: Bool = false,
    prepare: @escaping (ScratchFolder) throws -> any PreparedRun
  ) {
    self.name = name
    self.isSubject = isSubject
    makeRun = prepare
  }

  func prepareRun(in folder: ScratchFolder) throws -> any PreparedRun { try makeRun(folder) }
}
