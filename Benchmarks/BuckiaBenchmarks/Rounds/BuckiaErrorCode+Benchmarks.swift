import Buckia

/// Why a comparison has no result: the implementations did not do the same work, or cannot run here.
extension BuckiaErrorCode {
  /// Two implementations produced different rows.
  package static let resultsDiffer = Self(rawValue: "results-differ")
  /// A database has no table to measure with.
  package static let nothingToMeasure = Self(rawValue: "nothing-to-measure")
  /// Another program failed or is missing.
  package static let otherProgram = Self(rawValue: "other-program")
  /// This machine or its libraries do not allow the comparison.
  package static let unsuitable = Self(rawValue: "unsuitable")
}
