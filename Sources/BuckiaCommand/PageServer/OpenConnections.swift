import NIOConcurrencyHelpers
import NIOCore

/// The connections that are open, up to a limit.
///
/// At the limit a new connection takes the place of the oldest one that has not sent an accepted request yet: programs that do not know the
/// address cannot keep out those that do.
final class OpenConnections: Sendable {
  private struct Entry {
    let channel: any Channel
    var isTrusted = false
  }

  private let limit: Int
  /// In the order in which they were opened.
  private let entries = NIOLockedValueBox<[Entry]>([])

  init(limit: Int) { self.limit = limit }

  /// Adds a new connection.
  ///
  /// - Returns: False if there is no place for it.
  func admit(_ channel: any Channel) -> Bool {
    let (isAdmitted, oldest) = entries.withLockedValue { entries -> (Bool, (any Channel)?) in
      var oldest: (any Channel)?
      if entries.count >= limit {
        guard let place = entries.firstIndex(where: { !$0.isTrusted }) else { return (false, nil) }
        oldest = entries.remove(at: place).channel
      }
      entries.append(Entry(channel: channel))
      return (true, oldest)
    }
    oldest?.close(promise: nil)
    if isAdmitted {
      channel.closeFuture.whenComplete { [self] _ in
        entries.withLockedValue { entries in entries.removeAll { $0.channel === channel } }
      }
    }
    return isAdmitted
  }

  /// Notes that a connection has sent a request that was accepted.
  func trust(_ channel: any Channel) {
    entries.withLockedValue { entries in
      for place in entries.indices where entries[place].channel === channel { entries[place].isTrusted = true }
    }
  }
}
