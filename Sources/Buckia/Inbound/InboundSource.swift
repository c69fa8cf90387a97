/// What is to be applied, checked or looked into.
package enum InboundSource: Sendable {
  /// A file, or an inbound folder.
  case path(String)
  /// Bytes that came without a file.
  case spooled(SpooledInput)
}
