import BuckiaFormat
import BuckiaLedger

extension BuckiaHome {
  /// What the person knows of those who sign diffs: from the contacts and the person's own identity.
  ///
  /// - Throws: `BuckiaError` as ``contacts()`` and ``identity()``. Who is trusted is not guessed.
  func knownSenders() throws -> KnownSenders {
    let contacts = try contacts()
    var standings: [String: KnownSenders.Standing] = [:]
    var replaced = contacts.replacedKeys
    if let own = try publicIdentityIfAny() {
      standings[own.card.key] = .own
      replaced[own.card.key] = own.rotations.map { $0.endedKey.description }
    }
    for contact in contacts.all {
      if let proposed = contact.proposal?.rotation.card {
        standings[proposed.key] = .seen(name: contact.name, fingerprint: "\(proposed.fingerprint)")
      }
      standings[contact.card.key] =
        switch contact.state {
        case .seen: .seen(name: contact.name, fingerprint: "\(contact.card.fingerprint)")
        case .trusted: .trusted(name: contact.name)
        }
    }
    for key in contacts.ended {
      standings[key.key] = key.reason == .removed ? .removed(name: key.name) : .replaced(name: key.name)
    }
    return KnownSenders(standings, replaced: replaced)
  }
}
