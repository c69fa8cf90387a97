import Dispatch

/// The value of an option that belongs to another one before it, such as the `--where` of a `--table`.
///
/// The parser gathers the values of each option by itself, in the order in which they are given. When a value was read says what it
/// stands behind.
struct OrderedArgument {
  let text: String
  /// Greater than those of all values that were read before.
  let position: Int

  init(_ text: String) {
    self.text = text
    position = Self.counter.next()
  }

  private static let counter = Counter()

  /// Counts up, on its queue alone.
  private final class Counter: @unchecked Sendable {
    private let queue = DispatchQueue(label: "buckia.arguments")
    private var count = 0

    func next() -> Int {
      queue.sync {
        count += 1
        return count
      }
    }
  }
}
