import BuckiaBytes
import BuckiaFormat

/// A person's own keys, in the file `identity`.
extension BuckiaHome {
  private var identityFile: IdentityFile { IdentityFile(path: "\(path)/identity", sealing: passphrase) }

  /// The person's identity.
  ///
  /// - Throws: `BuckiaError`: `noIdentity` when none has been made; `notPrivate` when others can read or change the file;
  ///   `passphraseNeeded` when it is protected and the home has no ``passphrase``; `noMatchingIdentity` when that is wrong.
  public func identity() throws -> Identity { try BuckiaError.wrapping { try identityFile.read() } }

  /// The person's identity; nil where none has been made.
  ///
  /// - Throws: `BuckiaError` with `notPrivate` when others can read or change the file.
  package func identityIfAny() throws -> Identity? { try BuckiaError.wrapping { try identityFile.readIfPresent() } }

  /// The card to give to others; nil where no identity has been made.
  func ownCard() throws -> IdentityCard? { try identityFile.readPublicPart()?.card }

  /// What is public of the person's identity: the card, and what tells others of keys that were replaced. A protected identity is not
  /// unlocked for it.
  ///
  /// - Throws: `BuckiaError`: `noIdentity`, `notPrivate`; `passphraseNeeded` when the file that is kept for it beside a protected
  ///   identity is missing.
  public func publicIdentity() throws -> PublicIdentity {
    // Without an identity the call says so.
    try publicIdentityIfAny() ?? BuckiaError.wrapping { try identity().publicPart() }
  }

  /// The same; nil where no identity has been made.
  func publicIdentityIfAny() throws -> PublicIdentity? {
    try BuckiaError.wrapping { try identityFile.readPublicPart() }
  }

  /// Whether a passphrase protects the identity; nil where none has been made.
  ///
  /// - Throws: `BuckiaError` with `notPrivate` when others can read or change the file.
  public func isIdentityProtected() throws -> Bool? { try BuckiaError.wrapping { try identityFile.isProtected() } }

  /// Protects the identity with another passphrase, or with none. Who reads it meanwhile finds it protected in the old way or in the new
  /// one. What the disk has kept of the old file is not wiped.
  ///
  /// - Parameter next: The passphrase from now on; nil for none. This home still has the old one.
  /// - Throws: As ``identity()``; when the file cannot be written. Nothing has been changed then.
  public func changePassphrase(to next: IdentityPassphrase?) throws {
    try BuckiaError.wrapping { try identityFile.protect(with: next) }
  }

  /// Makes an identity: new keys, in a file that only its owner can read, protected where the home has a ``passphrase``. One that is
  /// there is never replaced.
  ///
  /// ```swift
  /// let me = try BuckiaHome.standard.makeIdentity(named: "Anna")
  /// print(me.card)
  /// ```
  ///
  /// - Parameter name: What its owner is called, for others to see: 1 to 64 characters.
  /// - Throws: `BuckiaError`: `identityExists`; `invalidName`; when the file cannot be written.
  @discardableResult
  public func makeIdentity(named name: String) throws -> Identity {
    try BuckiaError.wrapping {
      makeFolders()
      var generator = SystemRandomNumberGenerator()
      let identity = try Identity(named: name, at: WallClock.unixMilliseconds, using: &generator)
      try identityFile.create(identity)
      return identity
    }
  }

  /// Puts new keys in the place of the old ones. What the old key has signed is refused by all who accept the rotation.
  ///
  /// - Returns: What to send to everybody who has the card: they add it, and confirm the new fingerprint.
  /// - Throws: As ``identity()``; when the file cannot be written. The old keys are in force then. A protected identity stays so.
  public func rotateIdentity() throws -> KeyRotation {
    try BuckiaError.wrapping {
      var generator = SystemRandomNumberGenerator()
      return try identityFile.rotate(at: WallClock.unixMilliseconds, using: &generator).rotation
    }
  }
}

extension Identity {
  /// Reads an identity from a file that only its owner can read.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - passphrase: What opens it where it is protected.
  /// - Throws: `BuckiaError` as ``BuckiaHome/identity()``.
  public init(contentsOf path: String, passphrase: IdentityPassphrase? = nil) throws {
    self = try BuckiaError.wrapping { try IdentityFile(path: path, sealing: passphrase).read() }
  }
}

extension IdentityCard {
  /// Reads a card and verifies its signature.
  ///
  /// - Parameter text: The line that begins with `buckia-card-1:`. White space in it is ignored.
  /// - Throws: `BuckiaError`: `invalidCard`, `badSignature`, or `unsupportedFormat` for one of a newer version.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try IdentityCard(verifying: text) }
  }

  /// Reads the card in a file and verifies its signature.
  ///
  /// - Throws: As for its text; `BuckiaError` when the file cannot be read.
  public init(contentsOf path: String) throws {
    self = try BuckiaError.wrapping { try IdentityCard(verifying: Self.text(inFile: path)) }
  }

  /// The text in the file of a card or a rotation.
  ///
  /// - Throws: `IdentityError` when it is too long for one; `ByteStreamError`.
  static func text(inFile path: String) throws -> String {
    let file = try PosixFile(reading: path)
    guard file.initialByteCount <= textByteLimit else {
      throw IdentityError(.invalidCard, "it is no card: no card is that long", path: path)
    }
    let bytes = try [UInt8](unsafeUninitializedCapacity: Int(file.initialByteCount)) { buffer, count in
      count = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
