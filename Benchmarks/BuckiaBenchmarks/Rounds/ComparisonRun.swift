import Buckia

/// Runs a comparison round by round.
///
/// In every round each implementation does the work once, on fresh files, so that none profits from what another left in
/// caches. The order is reversed after each round: slow drift (clock speed, the disk, other programs) then affects all
/// implementations alike, and the ratio of their times stays meaningful.
///
/// After the first round the rows that each produced are read back, outside the timing. They must be the same.
package final class ComparisonRun {
  /// What was measured so far.
  package private(set) var result: MeasuredComparison
  private let comparison: Comparison
  private let implementations: [Implementation]
  private let root: ScratchFolder
  private var rounds = 0
  private var content: (name: ImplementationName, hash: UInt64)?

  /// Makes the input.
  ///
  /// - Parameters:
  ///   - comparison: What to compare.
  ///   - parent: The folder for all files; the system's temporary folder for nil.
  /// - Throws: What making the workload throws.
  package init(_ comparison: Comparison, in parent: ScratchFolder? = nil) throws {
    let root = try ScratchFolder(in: parent)
    let workload = try comparison.workload(in: root)
    self.comparison = comparison
    self.root = root
    implementations = workload.implementations
    result = MeasuredComparison(comparison, workload)
  }

  /// Lets each implementation do the work once.
  ///
  /// - Parameter willRun: Called before each implementation, outside the timing.
  /// - Throws: `BuckiaError` with `resultsDiffer`; whatever the implementations throw.
  package func round(willRun: (Implementation) -> Void = { _ in }) throws {
    let order = rounds.isMultiple(of: 2) ? Array(implementations.indices) : implementations.indices.reversed()
    for index in order {
      let folder = try ScratchFolder(in: root)
      willRun(implementations[index])
      let value = try withExtendedLifetime(folder) { try measure(implementations[index], in: folder) }
      result.series[index].values.append(value)
    }
    rounds += 1
  }

  private func measure(_ implementation: Implementation, in folder: ScratchFolder) throws -> Double {
    let run = try implementation.prepareRun(in: folder)
    let began = ContinuousClock.now
    let measured = try run.run()
    let elapsed = (ContinuousClock.now - began) / .seconds(1)
    if rounds == 0 { try compareContent(of: run, by: implementation) }
    return measured ?? elapsed
  }

  private func compareContent(of run: any PreparedRun, by implementation: Implementation) throws {
    guard let hash = try run.content() else { return }
    guard let content else {
      self.content = (implementation.name, hash)
      return
    }
    guard content.hash == hash else {
      throw BuckiaError(
        .resultsDiffer,
        "\(comparison.title): \(implementation.name) arrived at other rows than \(content.name), so their times say nothing"
      )
    }
  }
}
