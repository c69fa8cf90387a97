/// How much of a server anybody may take up.
package struct ServerLimits: Sendable {
  /// How many bytes the address and the header fields of a request may have.
  package var headBytes = 16 << 10
  /// How many bytes a form may have.
  package var bodyBytes = 4 << 20
  /// How many connections there may be at once. A further one takes the place of the oldest one without an accepted request, or is closed
  /// where there is none.
  package var connections = 32
  /// How long a connection may take for a request, and for taking the answer to it, in milliseconds. One that asks for
  /// nothing is closed after that.
  package var milliseconds: Int64 = 60_000

  /// The limits for one person's browsers.
  package init() {}
}
