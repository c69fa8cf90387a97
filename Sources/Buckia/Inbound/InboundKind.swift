import BuckiaFormat

/// What kind of file arrives.
enum InboundKind: Sendable {
  case diff
  case changeset
  case encrypted

  /// What a file with these first bytes is; nil when it is none of ours.
  init?(beginning: some Collection<UInt8>) {
    if beginning.starts(with: "age-encr".utf8) || beginning.starts(with: "-----BEG".utf8) {
      self = .encrypted
    } else if let first = beginning.first, first == UInt8(ascii: "T") || first == UInt8(ascii: "P") {
      self = .changeset
    } else if beginning.starts(with: DiffFile.firstBytes) {
      self = .diff
    } else {
      return nil
    }
  }
}
