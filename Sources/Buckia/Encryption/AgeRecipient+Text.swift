import BuckiaFormat

extension AgeRecipient {
  /// Reads a recipient.
  ///
  /// - Parameter text: The recipient as `age-keygen` prints it, `age1…`.
  /// - Throws: `BuckiaError` with code ``BuckiaErrorCode/invalidRecipient``.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try AgeRecipient(parsing: text) }
  }
}
