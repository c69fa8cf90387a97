import BuckiaApply

/// How diffs are taken back.
public struct UndoOptions: Sendable {
  /// What to do about rows that have been changed since. Columns that have not been changed since get their old values in any
  /// case; `keepLocal` leaves the others as they are, `takeIncoming` takes back the later change, too.
  public var conflicts: ConflictPolicies
  /// Whether only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool

  /// Makes options; the defaults are those of the command line.
  public init(conflicts: ConflictPolicies = .keepLocal, isDryRun: Bool = false) {
    self.conflicts = conflicts
    self.isDryRun = isDryRun
  }
}

/// What to take back.
public enum UndoSubject: Sendable, Hashable {
  /// A diff, by its id; a raw changeset without one by its digest in hex. An undo has an id, too, and can be taken back.
  case diff(String)
  /// All diffs of a sender that still stand, by the verified key in hex, or its beginning of eight digits or more.
  case sender(String)
  /// All unsigned diffs that still stand.
  case unsigned
}

extension UndoSubject {
  /// What a text that names senders stands for.
  ///
  /// - Parameters:
  ///   - names: Names of contacts, removed ones included, keys in hex or their beginnings, or `unsigned`.
  ///   - home: Where the contacts are.
  /// - Throws: As ``BuckiaHome/contacts()``.
  package static func senders(named names: [String], in home: BuckiaHome) throws -> [UndoSubject] {
    guard !names.isEmpty else { return [] }
    let contacts = try home.contacts()
    return names.flatMap { name -> [UndoSubject] in
      if name == "unsigned" { return [.unsigned] }
      let keys = contacts.keys(named: name)
      return keys.isEmpty ? [.sender(name)] : keys.map { .sender($0) }
    }
  }
}
