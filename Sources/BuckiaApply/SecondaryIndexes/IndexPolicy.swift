/// What becomes of the indexes of a table while its rows are written.
package enum IndexPolicy: Sendable {
  /// All are kept up to date row by row.
  case keep
  /// Those that take less time to create again are dropped meanwhile.
  case rebuildWhereFaster
  /// All that can be are dropped meanwhile, whatever it takes: for tests, since nothing but the time may depend on it.
  case rebuild
}
