import Buckia
import TestSupport
import Testing

/// Encrypts a file for two people and decrypts it as one of them.
private func exchange(_ file: String, for theirs: String, as sealed: String, and opened: String) throws {
  let identity = AgeIdentity()
  let recipient = try identity.recipient()
  print(recipient)

  let encryption = try FileEncryption(to: [AgeRecipient(theirs), recipient])
  try encryption.encrypt(file, to: sealed)
  let decryption = try FileDecryption(identities: [identity])
  do {
    try decryption.decrypt(sealed, to: opened)
  } catch let error as BuckiaError where error.code == .noMatchingIdentity {
    print("It is for somebody else.")
  }
}

@Suite("Samples about encryption")
struct EncryptionSamples {
  @Test("A file is opened by both of those it is for, and by no one else")
  func twoRecipients() throws {
    let folder = try TemporaryFolder()
    let (file, sealed) = (try folder.write([1, 2, 3], to: "photo"), folder.file("sealed"))
    let theirs = AgeIdentity()
    let printed = try Printed.lines {
      try exchange(file, for: theirs.recipient().description, as: sealed, and: folder.file("opened"))
    }
    #expect(printed.count == 1 && printed[0].hasPrefix("age1"))
    #expect(try fileBytes(folder.file("opened")) == [1, 2, 3])
    try FileDecryption(identities: [theirs]).decrypt(sealed, to: folder.file("theirs"))
    #expect(try fileBytes(folder.file("theirs")) == [1, 2, 3])
    let error = #expect(throws: BuckiaError.self) {
      try FileDecryption(identities: [AgeIdentity()]).decrypt(sealed, to: folder.file("other"))
    }
    #expect(error?.code == .noMatchingIdentity)
    #expect(!folder.has("other"))
  }
}
