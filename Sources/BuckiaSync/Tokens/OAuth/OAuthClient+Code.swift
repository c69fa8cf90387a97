extension OAuthClient {
  /// Signs somebody in with their browser on this computer: opens a port of this computer alone, to which the browser comes back (RFC 8252).
  ///
  /// - Parameters:
  ///   - port: The port, where the server wants a fixed one in its settings of the app; 0 for any that is free.
  ///   - seconds: How long to wait for the person; at most a day.
  ///   - open: Opens the address in the browser, or shows it to the person.
  /// - Throws: `TokenError` with `accessDenied`, `signInExpired` and others; `CancellationError`; what `open` throws.
  public func signIn(
    port: Int = 0, within seconds: Int64 = 300, open: @Sendable (_ address: String) async throws -> Void
  ) async throws -> SignIn {
    let listener = try await LoopbackListener.open(port: port)
    do {
      let begun = try await beginSignIn(returningTo: listener.address)
      await listener.accept { CodeCallback($0)?.belongs(to: begun) ?? false }
      try await open(begun.address)
      let target = try await listener.target(within: seconds)
      await listener.close()
      return try await finish(begun, with: target)
    } catch {
      await listener.close()
      throw error
    }
  }

  /// Begins a sign-in, for an app that opens the address itself and gets the answer with an address of its own.
  ///
  /// - Parameter returnAddress: Where the browser comes back to, as the server's settings of the app have it.
  /// - Throws: `TokenError`; `CancellationError`.
  public func beginSignIn(returningTo returnAddress: String) async throws -> CodeSignIn {
    CodeSignIn(configuration, try await metadata(), returningTo: returnAddress)
  }

  /// Finishes a sign-in.
  ///
  /// - Parameters:
  ///   - begun: The sign-in.
  ///   - target: The address with which the browser has come back.
  /// - Throws: `TokenError`; `CancellationError`.
  public func finish(_ begun: CodeSignIn, with target: String) async throws -> SignIn {
    let metadata = try await metadata()
    guard let callback = CodeCallback(target) else {
      throw TokenError(.invalidAnswer, "what the browser has brought cannot be read; sign in again")
    }
    let code = try callback.code(for: begun, metadata)
    let form = [
      ("grant_type", "authorization_code"), ("code", code.value), ("redirect_uri", begun.returnAddress),
      ("code_verifier", begun.verifier.value),
    ]
    switch try await send(form, to: metadata.tokenEndpoint) {
    case .refused(let refusal): throw refusal.error
    case .accepted(let answer): return try await signIn(answer, nonce: begun.nonce.value)
    }
  }
}
