/// The measured values of one comparison, one for each implementation and round.
package struct MeasuredComparison: Codable, Sendable {
  /// The values of one implementation.
  package struct Series: Codable, Sendable {
    /// The implementation.
    package let name: ImplementationName
    /// True if it is Buckia.
    package let isSubject: Bool
    /// One value a round, in the unit of the comparison.
    package internal(set) var values: [Double]

    /// The median: the mean of the two middle values for an even number of rounds, nil before the first round.
    package var median: Double? {
      guard !values.isEmpty else { return nil }
      let sorted = values.sorted()
      let middle = sorted.count / 2
      return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }
  }

  /// The comparison's id.
  package let id: String
  /// What was done.
  package let title: String
  /// The size of the input, for people.
  package let size: String
  /// Notes for readers.
  package let notes: [String]
  /// What was measured.
  package let unit: MeasuredUnit
  /// The figures that compare the implementations.
  package let figures: [Figure]
  /// The implementations and their values.
  package internal(set) var series: [Series]

  init(_ comparison: Comparison, _ workload: Workload) {
    id = comparison.id
    title = comparison.title
    size = workload.size
    notes = workload.notes
    unit = comparison.unit
    figures = comparison.figures
    series = workload.implementations.map { Series(name: $0.name, isSubject: $0.isSubject, values: []) }
  }

  /// The median of an implementation; nil when it was not measured.
  package func median(of name: ImplementationName) -> Double? { series.first { $0.name == name }?.median }

  /// The figures whose implementations were measured, with their numbers.
  package var numbers: [(figure: Figure, number: Double)] {
    figures.compactMap { figure in figure.number { median(of: $0) }.map { (figure, $0) } }
  }
}
