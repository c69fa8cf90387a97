import Dispatch

/// What has come of what was done: it is told on the page that the browser is sent on to, whose address has its number.
final class SiteMessages: @unchecked Sendable {
  // Everything below is used on this queue alone.
  private let queue = DispatchQueue(label: "buckia.serve.messages")
  private var messages: [Int: PageMessage] = [:]
  private var newest = 0

  /// How many are kept: a browser asks for one at once.
  private static let limit = 100

  /// Keeps a message.
  ///
  /// - Returns: Its number.
  func keep(_ message: PageMessage) -> String {
    queue.sync {
      newest += 1
      messages[newest] = message
      messages[newest - Self.limit] = nil
      return String(newest)
    }
  }

  /// The message of a number; nil where it is not kept any more.
  func message(_ number: String?) -> PageMessage? {
    guard let number = number.flatMap({ Int($0) }) else { return nil }
    return queue.sync { messages[number] }
  }
}
