/// What becomes of the indexes of a table while its rows are written.
package enum IndexPolicy: Sendable {
  /// All are kept up to date row by row.
  case keep
  /// Those that take less time to create again are dropped meanwhile.
  case rebuildWhereFaster
  /// All that can be are dropped meanwhile, whatever it takes: for tests, since nothing but the time may depend on it.
  case rebuild
}

/// How rows that only their content identifies are found.
package enum ContentPolicy: Sendable {
  /// The table is searched for each change.
  case search
  /// An index of the contents is made when the searches have taken longer than that.
  case indexWhereFaster
  /// An index of the contents is made for the first change: for tests, since nothing but the time may depend on it.
  case index
}
