/// Why a server could not be started.
package struct PageServerError: Error, CustomStringConvertible {
  /// What happened, and what to do.
  package let description: String
}
