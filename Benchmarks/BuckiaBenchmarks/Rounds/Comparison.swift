/// The same work, done by several implementations.
package struct Comparison {
  /// An identifier for file names, of lower-case letters, digits and hyphens.
  package let id: String
  /// The work, the table and the number of rows: `1,000,000 inserts, TEXT key`.
  package let title: String
  /// What is measured.
  package let unit: MeasuredUnit
  /// The figures that compare the implementations.
  package let figures: [Figure]
  private let prepare: (ScratchFolder) throws -> Workload

  /// Makes a comparison.
  ///
  /// - Parameters:
  ///   - id: An identifier for file names.
  ///   - title: What is done.
  ///   - unit: What is measured.
  ///   - figures: The figures that compare the implementations.
  ///   - workload: Called once, to make the input in a folder that exists until the last round is over.
  package init(
    id: String, title: String, unit: MeasuredUnit = .seconds, figures: [Figure],
    workload: @escaping (ScratchFolder) throws -> Workload
  ) {
    self.id = id
    self.title = title
    self.unit = unit
    self.figures = figures
    prepare = workload
  }

  func workload(in folder: ScratchFolder) throws -> Workload { try prepare(folder) }
}

/// The input of a comparison, and the implementations that work on it.
package struct Workload {
  /// The size of the input, for people: `1,000,000 rows, changeset 147 MB`.
  package let size: String
  /// Notes for readers: versions of other programs, and which were left out and why.
  package let notes: [String]
  /// The implementations to measure.
  package let implementations: [Implementation]

  /// Makes a workload.
  package init(size: String, notes: [String] = [], implementations: [Implementation]) {
    self.size = size
    self.notes = notes
    self.implementations = implementations
  }
}
