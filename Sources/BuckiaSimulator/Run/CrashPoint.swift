import BuckiaApply

/// Ends a simulated process when it has written so many rows. Whatever it tries afterwards fails as well.
final class CrashPoint: RowEffectObserver {
  /// The process is dead.
  struct Crash: Error {}

  let wantsRows = false
  private var rowsLeft: Int

  init(afterRows rows: Int) { rowsLeft = rows }

  func didWrite(_ effect: RowEffect) throws {
    guard rowsLeft > 0 else { throw Crash() }
    rowsLeft -= 1
  }

  /// What is rolled back has been written all the same.
  var mark: Int { 0 }
  func rewind(to mark: Int) {}
}
