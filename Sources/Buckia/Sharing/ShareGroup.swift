import BuckiaFormat
import SQLiteSchemas

/// Those recipients of a share who get the same file.
struct ShareGroup {
  /// What they are called.
  let names: [String]
  /// For whom the file is encrypted; nil for one that is not.
  let encryption: Encryption?

  /// Everybody who may be named, for a file that is not encrypted.
  init(names: [String]) {
    self.names = names
    encryption = nil
  }

  private init(_ recipients: [ShareRecipient]) throws {
    names = recipients.map(\.name)
    encryption = try Encryption(to: recipients.compactMap(\.key))
  }

  /// Divides recipients, who all have keys, by what a file can be encrypted for at most. The same people are always divided in the same
  /// way, so that each gets all files of a share in the same folder.
  ///
  /// - Throws: `AgeError` with code `noRecipients` or `mixedRecipients`.
  static func groups(of recipients: [ShareRecipient]) throws -> [ShareGroup] {
    let sorted = recipients.sorted { $0.name < $1.name }
    // Several files would have the same contents, as weakly encrypted as the weakest.
    let safe = sorted.count { $0.key?.isQuantumSafe == true }
    guard safe == 0 || safe == sorted.count else { return [try ShareGroup(sorted)] }
    var groups: [[ShareRecipient]] = []
    var places: [AgeRecipient: Int] = [:]
    for recipient in sorted {
      guard let key = recipient.key else { continue }
      // Somebody with two names has one key, and opens one file.
      let place = places[key] ?? places.count / Encryption.recipientLimit
      places[key] = place
      if place == groups.count { groups.append([]) }
      groups[place].append(recipient)
    }
    return try groups.map { try ShareGroup($0) }
  }
}
