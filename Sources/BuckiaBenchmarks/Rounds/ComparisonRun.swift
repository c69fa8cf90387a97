/// A comparison under way: its work is ready, and it goes round by round.
///
/// In every round each contender does the work once, on files of its own that were made just before, so that none finds
/// what another left in caches. The order turns around from round to round: whatever drifts (clock speed, the disk, other
/// programs) falls on all of them alike, which is what makes their ratio mean something.
///
/// In the first round what each arrived at is read back, outside the timing, and must be the same rows.
public final class ComparisonRun {
  /// What was measured so far.
  public private(set) var result: MeasuredComparison
  private let comparison: Comparison
  private let contenders: [Contender]
  private let root: ScratchFolder
  private var rounds = 0
  private var content: (name: ContenderName, hash: UInt64)?

  /// Makes what the contenders work on.
  ///
  /// - Parameters:
  ///   - comparison: What to compare.
  ///   - parent: Where everything is kept; the system's place for temporary files for nil.
  /// - Throws: What the workload throws.
  public init(_ comparison: Comparison, in parent: ScratchFolder? = nil) throws {
    let root = try ScratchFolder(in: parent)
    let workload = try comparison.workload(in: root)
    self.comparison = comparison
    self.root = root
    contenders = workload.contenders
    result = MeasuredComparison(comparison, workload)
  }

  /// Lets each contender do the work once.
  ///
  /// - Parameter around: Is given each contender and its work, and must run the work once: for those who watch.
  /// - Throws: `BenchmarkError` with `resultsDiffer`; whatever the contenders throw.
  public func round(around: (Contender, () throws -> Void) throws -> Void = { try $1() }) throws {
    let order = rounds.isMultiple(of: 2) ? Array(contenders.indices) : contenders.indices.reversed()
    for index in order {
      let folder = try ScratchFolder(in: root)
      let value = try withExtendedLifetime(folder) { try measure(contenders[index], in: folder, around: around) }
      result.series[index].values.append(value)
    }
    rounds += 1
  }

  private func measure(
    _ contender: Contender, in folder: ScratchFolder, around: (Contender, () throws -> Void) throws -> Void
  ) throws -> Double {
    let trial = try contender.trial(in: folder)
    var value: Double?
    try around(contender) {
      let began = ContinuousClock.now
      let measured = try trial.run()
      let elapsed = (ContinuousClock.now - began) / .seconds(1)
      value = measured ?? elapsed
    }
    guard let value else {
      throw BenchmarkError(.unsuitable, "\(comparison.title): \(contender.name) was not run")
    }
    if rounds == 0 { try compareContent(of: trial, by: contender) }
    return value
  }

  private func compareContent(of trial: any Trial, by contender: Contender) throws {
    guard let hash = try trial.content() else { return }
    guard let content else {
      self.content = (contender.name, hash)
      return
    }
    guard content.hash == hash else {
      throw BenchmarkError(
        .resultsDiffer,
        "\(comparison.title): \(contender.name) arrived at other rows than \(content.name), so their times say nothing")
    }
  }
}
