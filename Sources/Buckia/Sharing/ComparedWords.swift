import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import BuckiaSharing
import SQLiteConnections

/// The rows that are shared with somebody, as they are now, in six words. Who has the same rows has the same words, so two people who read
/// them to each other know.
public struct ComparedWords: Equatable, Sendable {
  /// With whom, for people: those that something is shared with, or the sender of what has come.
  public let people: String
  /// The streams between the two: 32 digits each.
  public let streams: [String]
  /// How many rows there are.
  public let rows: Int64
  /// The words; empty where `problem` says why there are none.
  public let words: [String]
  /// What the words stand for: 32 digits.
  public let digest: String
  /// Why there are no words: a scope cannot be followed any more. nil where there are.
  public let problem: String?
}

extension ComparedWords {
  /// The words of all with whom something is shared. Tables of keys are made in the TEMP schema.
  static func all(naming senders: KnownSenders, on connection: borrowing SQLiteConnection) throws -> [ComparedWords] {
    let schema = try SchemaReader(connection)
    var found: [ComparedWords] = []
    let exchanges = try LiveWords.exchanges(on: connection) { sender in
      if case .trusted(let name) = senders.standing(of: sender) { name } else { nil }
    }
    for exchange in exchanges {
      let people = try people(in: exchange, senders)
      let streams = exchange.streams.map { HexText.lowercase($0) }
      do {
        let words = try LiveWords(of: exchange, schema, on: connection)
        found.append(
          ComparedWords(
            people: people, streams: streams, rows: words.rowCount, words: words.words,
            digest: HexText.lowercase(words.digest), problem: nil))
      } catch let error as ReplicationError {
        found.append(
          ComparedWords(people: people, streams: streams, rows: 0, words: [], digest: "", problem: error.message))
      }
    }
    return found
  }

  private static func people(in exchange: LiveWords.Exchange, _ senders: KnownSenders) throws -> String {
    let names = try Set(exchange.shares.flatMap { try $0.recipients }).sorted().joined(separator: ", ")
    guard let sender = exchange.sender else { return names }
    // Unsigned diffs do not say whose they are; the share that they acknowledge does.
    return sender.isEmpty && !names.isEmpty ? names : senders.shown(sender)
  }
}
