import BuckiaLedger
import SQLiteConnections

/// The keys that a sender had before, and what was noted of their streams.
///
/// Streams are kept by key, so a new key begins anew, with a snapshot that names the stream of the former one. Only a person who has
/// confirmed the new key has made them one sender: then it takes over what is known of the former one's streams.
struct ReplacedKeys {
  private let former: [String]
  private let present: String

  /// - Parameters:
  ///   - former: The keys, as the ledger has them.
  ///   - present: The one that has replaced them.
  init(_ former: [String], by present: String) {
    self.former = former
    self.present = present
  }

  /// Makes what is known of the former keys known of the present one: how far they have applied what was sent, and which rows came
  /// with the stream that a snapshot takes the place of. Streams whose place was taken before the key was confirmed are forgotten.
  ///
  /// - Parameter place: That of the diff which is about to be applied.
  /// - Throws: `SQLiteError`.
  func handOver(_ place: StreamPlace?, on connection: borrowing SQLiteConnection) throws {
    for key in former {
      try AcknowledgementEntry.handOver(from: key, to: present, on: connection)
      let streams = try VouchEntry.streams(from: key, on: connection)
      guard !streams.isEmpty else { continue }
      let replaced = try StreamEntries.replaced(by: present, on: connection)
      for stream in streams {
        if stream == place?.replaces {
          try VouchEntry.handOver(stream, from: key, to: present, on: connection)
        } else if replaced.contains(stream) {
          for table in try VouchEntry.tables(of: stream, from: key, on: connection) {
            try VouchEntry.remove(stream, from: key, table, on: connection)
          }
          try StateEntry.remove(stream, from: key, nil, on: connection)
          try RowNameEntry.forget(stream, from: key, on: connection)
        }
      }
    }
  }
}
