/// Goes through the withdrawals of a diff, change by change.
struct WithdrawalRuns {
  private let runs: [(count: Int64, isWithdrawal: Bool)]
  private var index = 0
  private var left: Int64

  init(_ runs: [(count: Int64, isWithdrawal: Bool)]) {
    self.runs = runs
    left = runs.first?.count ?? 0
  }

  /// Whether the next change is a withdrawal.
  mutating func next() -> Bool {
    guard index < runs.count else { return false }
    while left == 0 {
      index += 1
      guard index < runs.count else { return false }
      left = runs[index].count
    }
    left -= 1
    return runs[index].isWithdrawal
  }
}
