/// One kind of recipient: how it wraps the key of a file.
protocol RecipientKind: Sendable {
  /// Wraps the key of a file.
  ///
  /// - Throws: `AgeError`.
  func wrap(_ key: FileKey) throws(AgeError) -> Stanza
}
