/// What was measured in one comparison: the values themselves, one for each round.
public struct MeasuredComparison: Codable, Sendable {
  /// The values of one contender.
  public struct Series: Codable, Sendable {
    /// Who.
    public let name: ContenderName
    /// Whether it is Buckia.
    public let isSubject: Bool
    /// One value a round, in the unit of the comparison.
    public internal(set) var values: [Double]

    /// The value in the middle; the mean of both for an even number of rounds. Nil before the first round.
    public var median: Double? {
      guard !values.isEmpty else { return nil }
      let sorted = values.sorted()
      let middle = sorted.count / 2
      return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }
  }

  /// The comparison's name for files.
  public let id: String
  /// What was done.
  public let title: String
  /// How large it was.
  public let size: String
  /// What readers should know.
  public let remarks: [String]
  /// What was measured.
  public let unit: MeasuredUnit
  /// What the contenders are compared for.
  public let figures: [Figure]
  /// The contenders and their values.
  public internal(set) var series: [Series]

  init(_ comparison: Comparison, _ workload: Workload) {
    id = comparison.id
    title = comparison.title
    size = workload.size
    remarks = workload.remarks
    unit = comparison.unit
    figures = comparison.figures
    series = workload.contenders.map { Series(name: $0.name, isSubject: $0.isSubject, values: []) }
  }

  /// The median of a contender; nil when it did not take part.
  public func median(of name: ContenderName) -> Double? { series.first { $0.name == name }?.median }

  /// The figures that could be measured, with their numbers.
  public var numbers: [(figure: Figure, number: Double)] {
    figures.compactMap { figure in figure.number { median(of: $0) }.map { (figure, $0) } }
  }
}
