/// Why a comparison has no result: the implementations did not do the same work, or cannot run here.
package struct BenchmarkError: Error, Sendable, CustomStringConvertible {
  /// The kind of an error. New versions may add more.
  package struct Code: RawRepresentable, Hashable, Sendable {
    /// The code as it appears in JSON.
    package let rawValue: String
    /// Makes a code.
    package init(rawValue: String) { self.rawValue = rawValue }

    /// Two implementations produced different rows.
    package static let resultsDiffer = Code(rawValue: "results-differ")
    /// A database has no table to measure with.
    package static let nothingToMeasure = Code(rawValue: "nothing-to-measure")
    /// Another program failed or is missing.
    package static let otherProgram = Code(rawValue: "other-program")
    /// This machine or its libraries do not allow the comparison.
    package static let unsuitable = Code(rawValue: "unsuitable")
  }

  /// What kind of error.
  package let code: Code
  /// A sentence for people.
  package let description: String

  /// Makes an error.
  package init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }
}
