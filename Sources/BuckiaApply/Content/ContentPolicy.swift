/// How rows that only their content identifies are found.
package enum ContentPolicy: Sendable {
  /// The table is searched for each change.
  case search
  /// An index of the contents is made when the searches have taken longer than that.
  case indexWhereFaster
  /// An index of the contents is made for the first change: for tests, since nothing but the time may depend on it.
  case index
}
