/// The same work, done by several contenders.
public struct Comparison {
  /// A name for files, of lower-case letters and hyphens.
  public let id: String
  /// What is done, to which table, how often: `1,000,000 inserts, TEXT key`.
  public let title: String
  /// What is measured.
  public let unit: MeasuredUnit
  /// What the contenders are compared for.
  public let figures: [Figure]
  private let prepare: (ScratchFolder) throws -> Workload

  /// Makes a comparison.
  ///
  /// - Parameters:
  ///   - id: A name for files.
  ///   - title: What is done.
  ///   - unit: What is measured.
  ///   - figures: What the contenders are compared for.
  ///   - workload: Makes what they work on, in a folder that stays until the last round is over; called once.
  public init(
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

/// What contenders work on, and who they are.
public struct Workload {
  /// How large it is, for people: `1,000,000 rows, changeset 147 MB`.
  public let size: String
  /// What readers should know: versions of other programs, and who could not take part and why.
  public let remarks: [String]
  /// Who takes part.
  public let contenders: [Contender]

  /// Makes a workload.
  public init(size: String, remarks: [String] = [], contenders: [Contender]) {
    self.size = size
    self.remarks = remarks
    self.contenders = contenders
  }
}
