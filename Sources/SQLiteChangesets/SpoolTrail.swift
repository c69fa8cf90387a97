/// Gives back the memory of a spool behind a reader that goes through it from the beginning to the end.
///
/// What lies shortly behind stays: values of the change before may still be looked at.
public struct SpoolTrail {
  /// How much is kept, and how much is given back at once, in bytes.
  private static let size = 2 << 20

  private let spool: ChangesetSpool?
  private var released: Int

  /// Begins at an offset of a spool; without a spool it does nothing.
  public init(of spool: ChangesetSpool?, at start: Int = 0) {
    self.spool = spool
    released = start
  }

  /// Says that the reader has come to an offset.
  @inline(__always)
  public mutating func advance(to position: Int) {
    if position - released >= 2 * Self.size { release(before: position - Self.size) }
  }

  /// An offset rounded down to where a page begins, whatever the system's pages are.
  static func wholePages(_ position: Int) -> Int { position & ~0xffff }

  private mutating func release(before position: Int) {
    let limit = Self.wholePages(position)
    spool?.release(released..<limit)
    released = limit
  }
}
