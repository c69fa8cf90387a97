/// What is called from every host.
enum HostCall: String, CaseIterable {
  /// Two database files become a diff file.
  case diff
  /// A diff file is applied to a database file.
  case apply

  /// What the call does, for titles.
  var title: String {
    switch self {
    case .diff: "A call for the difference of two databases"
    case .apply: "A call that applies a diff file"
    }
  }
}
