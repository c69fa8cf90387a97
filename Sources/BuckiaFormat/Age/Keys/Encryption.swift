/// For whom a file is encrypted: for recipients, or for all who know a passphrase.
package struct Encryption: Sendable {
  private let kinds: [any RecipientKind]

  /// How many recipients a file can have at most.
  package static let recipientLimit = AgeHeader.maximumStanzas

  /// For some recipients; naming one twice is naming it once.
  ///
  /// - Throws: `AgeError` with code `noRecipients`, `tooManyRecipients` or `mixedRecipients`.
  package init(to recipients: [AgeRecipient]) throws(AgeError) {
    var seen: Set<AgeRecipient> = []
    let recipients = recipients.filter { seen.insert($0).inserted }
    guard !recipients.isEmpty else { throw AgeError(.noRecipients, "no recipient is given") }
    let safe = recipients.count { $0.isQuantumSafe }
    guard safe == 0 || safe == recipients.count else {
      throw AgeError(
        .mixedRecipients,
        "recipients that are safe from quantum computers (age1pq1…) cannot share a file with others: it would be as weak "
          + "as the weakest; encrypt it twice")
    }
    guard recipients.count <= Self.recipientLimit else {
      throw AgeError(
        .tooManyRecipients,
        "a file can have up to \(Self.recipientLimit) recipients, and there are \(recipients.count)")
    }
    kinds = recipients.map(\.kind)
  }

  /// For all who know a passphrase.
  ///
  /// - Parameters:
  ///   - passphrase: The passphrase, byte by byte as it was typed.
  ///   - workFactor: The logarithm to base 2 of what each try of a passphrase costs, from 1 to 20.
  /// - Throws: `AgeError` with code `emptyPassphrase`.
  package init(passphrase: [UInt8], workFactor: Int? = nil) throws(AgeError) {
    let factor = min(max(workFactor ?? Passphrase.defaultWorkFactor, 1), Passphrase.maximumWorkFactor)
    kinds = [try Passphrase(passphrase, workFactor: factor)]
  }

  /// The header for a file's key.
  func header(for key: FileKey) throws(AgeError) -> AgeHeader {
    var stanzas: [Stanza] = []
    for kind in kinds { stanzas.append(try kind.wrap(key)) }
    return AgeHeader(stanzas, of: key)
  }
}
