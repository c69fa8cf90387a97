import BuckiaFormat
import BuckiaBytes
import SQLiteSchemas
import Dispatch

/// The keys of a person that open what is encrypted for them. Those of a protected identity are unlocked by the first file that is
/// encrypted, so that nobody is asked for a passphrase for nothing.
final class OwnKeys: @unchecked Sendable {
  /// The public halves, which tell whether a diff is for them.
  let publicKeys: [[UInt8]]
  private let home: BuckiaHome
  // The lock guards `unlocked`.
  private let lock = DispatchSemaphore(value: 1)
  private var unlocked: Result<Decryption, ByteStreamError>?

  /// The keys of the person whose home it is; nil where they have none.
  ///
  /// - Throws: `BuckiaError` as ``BuckiaHome/publicIdentity()``.
  init?(of home: BuckiaHome) throws {
    guard let identity = try home.publicIdentityIfAny() else { return nil }
    publicKeys = identity.encryptionKeys.map(\.bytes)
    self.home = home
  }

  /// What opens files.
  ///
  /// - Throws: `ByteStreamError` when the identity cannot be unlocked: the same each time, so that nobody is asked again for each file.
  func decryption() throws(ByteStreamError) -> Decryption {
    lock.wait()
    defer { lock.signal() }
    let result = unlocked ?? unlock()
    unlocked = result
    return try result.get()
  }

  private func unlock() -> Result<Decryption, ByteStreamError> {
    do {
      return .success(try FileDecryption(identities: AgeIdentity.identities(of: home.identity())).decryption)
    } catch {
      return .failure(
        ByteStreamError(
          ByteStreamError.Code(rawValue: BuckiaErrorCode.encrypted.rawValue),
          "it is encrypted, and your identity cannot be unlocked: \(error)"))
    }
  }
}
