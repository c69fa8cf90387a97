import BuckiaBytes

extension ByteStreamError.Code {
  /// It is no age file, or of a version that is not known here.
  package static let notEncrypted = Self(rawValue: "notEncrypted")
  /// The header breaks a rule of the format.
  package static let malformedHeader = Self(rawValue: "malformedHeader")
  /// The header has been altered: it does not carry the seal of whoever knows the file's key.
  package static let alteredHeader = Self(rawValue: "alteredHeader")
  /// The text around the encrypted bytes breaks a rule of the format.
  package static let malformedArmor = Self(rawValue: "malformedArmor")
  /// None of the identities opens the file.
  package static let noMatchingIdentity = Self(rawValue: "noMatchingIdentity")
  /// Opening the file would take more memory and time than anyone honest asks for.
  package static let excessiveWorkFactor = Self(rawValue: "excessiveWorkFactor")
  /// The encrypted bytes end too early, go on for too long, or are not those that were written.
  package static let alteredPayload = Self(rawValue: "alteredPayload")
  /// This system's cryptography cannot open files of this kind.
  package static let unsupportedEncryption = Self(rawValue: "unsupportedEncryption")
  /// An encrypted file was to be written on after its end.
  package static let alreadyFinished = Self(rawValue: "alreadyFinished")
}
