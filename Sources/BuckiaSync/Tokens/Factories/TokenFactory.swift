/// Makes tokens for others, who get no more than the permissions say.
///
/// Each factory makes a kind of its own: ``BunnyTokenFactory`` and ``S3AddressFactory`` signed addresses, ``B2KeyFactory`` keys of Backblaze B2,
/// ``SignedTokenFactory`` bearer tokens (JWT).
public protocol TokenFactory: Sendable {
  /// What it makes.
  associatedtype Token: Sendable

  /// Makes a token.
  ///
  /// - Throws: `TokenError` with `inexpressible` when this kind of token cannot say what the options want, `invalidSetting`, or what a
  ///   server has to say.
  func makeToken(_ options: AccessTokenOptions) async throws -> Token
}
