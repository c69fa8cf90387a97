/// A part of the suite.
enum Part: String, Codable, CaseIterable, Sendable {
  case apply
  case folder
  case diff
  case share
  case sync
  case backup
  case memory
  case peer
  case hosts

  /// What is measured in it, as a heading.
  var title: String {
    switch self {
    case .apply: "Applying changes"
    case .folder: "Inbound folders"
    case .diff: "Finding the difference"
    case .share: "Sharing"
    case .sync: "Storage"
    case .backup: "Backups"
    case .memory: "Memory"
    case .peer: "Against other programs"
    case .hosts: "Called from other languages"
    }
  }
}
