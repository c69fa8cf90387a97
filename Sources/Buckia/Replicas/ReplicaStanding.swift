import SQLiteSchemas

/// What a database that says which replica it is turns out to be, from what is known of that replica outside of it.
enum ReplicaStanding: Equatable {
  /// What it says it is.
  case same
  /// What it says it is, at another path than before.
  case moved
  /// It does not say, and has to get an id. Another database, or a later state of this one, may have been at its path before.
  case new(wasKnown: Bool)
  /// An earlier state of what it says it is.
  case restored
  /// A copy of the database at this path, which is still there.
  case copy(of: String)
  /// What it says it is, and registered in another home.
  case otherHome
  /// Unknown here: it comes from elsewhere, or what was known is lost.
  case unknown

  /// What people are told when the standing has been mended; nil where there is nothing to tell.
  var remark: Remark? {
    switch self {
    case .same, .moved, .new(wasKnown: false): nil
    case .new(wasKnown: true): Remark(.replicaMissing)
    case .restored: Remark(.replicaRestored)
    case .otherHome: Remark(.replicaOtherHome)
    case .copy(let original): Remark(.replicaCopied, original)
    case .unknown: Remark(.replicaUnknown)
    }
  }
}
