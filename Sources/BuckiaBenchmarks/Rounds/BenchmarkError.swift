/// Why a benchmark says nothing: its contenders did not do the same work, or cannot do it here.
public struct BenchmarkError: Error, Sendable, CustomStringConvertible {
  /// The kinds that are told apart. More may come.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The code as it appears in JSON.
    public let rawValue: String
    /// Makes a code.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Two contenders arrived at different rows.
    public static let resultsDiffer = Code(rawValue: "results-differ")
    /// A database has no table to measure with.
    public static let nothingToMeasure = Code(rawValue: "nothing-to-measure")
    /// Another program failed, or is not there.
    public static let otherProgram = Code(rawValue: "other-program")
    /// This machine or its libraries do not allow the comparison.
    public static let unsuitable = Code(rawValue: "unsuitable")
  }

  /// What kind of error.
  public let code: Code
  /// A sentence for people.
  public let description: String

  /// Makes an error.
  public init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }
}
