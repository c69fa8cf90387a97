import BuckiaFormat
import Foundation
import TestSupport
import Testing

@Suite("The age program", .enabled(if: AgeProgram.isInstalled, Comment(rawValue: AgeProgram.requirement)))
struct AgeInteroperationTests {
  @Test("age decrypts what we encrypt", arguments: AgeRoundTripTests.sizes, [false, true])
  func opens(count: Int, isArmored: Bool) throws {
    let folder = try TemporaryFolder()
    let identity = AgeIdentity()
    try folder.write(Array(identity.secretText.utf8), to: "key")
    let plain = Ciphers.sample(count)
    let recipients = try [AgeIdentity().makeRecipient(), identity.makeRecipient()]
    try folder.write(Ciphers.encrypt(plain, for: Encryption(to: recipients), armored: isArmored), to: "sealed")
    let arguments = ["-d", "-i", folder.file("key"), "-o", folder.file("plain"), folder.file("sealed")]
    #expect(try AgeProgram.run("age", arguments) == 0)
    // age creates no file for empty output.
    #expect(try (count == 0 && !folder.has("plain") ? [] : fileBytes(folder.file("plain"))) == plain)
  }

  @Test("we decrypt what age encrypts", arguments: AgeRoundTripTests.sizes, [false, true])
  func isOpened(count: Int, isArmored: Bool) throws {
    let folder = try TemporaryFolder()
    #expect(try AgeProgram.run("age-keygen", ["-o", folder.file("key")]) == 0)
    let identities = try AgeIdentity.all(inFile: fileBytes(folder.file("key")))
    let plain = Ciphers.sample(count)
    try folder.write(plain, to: "plain")
    let recipients = try (identities + [AgeIdentity()]).flatMap { ["-r", try $0.makeRecipient().description] }
    let arguments = recipients + (isArmored ? ["-a"] : []) + ["-o", folder.file("sealed"), folder.file("plain")]
    #expect(try AgeProgram.run("age", arguments) == 0)
    #expect(try Ciphers.decrypt(fileBytes(folder.file("sealed")), with: Decryption(identities: identities)) == plain)
  }

  @Test("age decrypts with our passphrase, and with no other")
  func opensWithPassphrase() throws {
    let folder = try TemporaryFolder()
    let plain = Ciphers.sample(100_000)
    // With the default work factor.
    try folder.write(Ciphers.encrypt(plain, for: Encryption(passphrase: Array("sword fish".utf8))), to: "sealed")
    let arguments = ["-d", "-o", folder.file("plain"), folder.file("sealed")]
    #expect(try AgeProgram.run(typing: "sword fishes", arguments) != 0)
    #expect(!folder.has("plain"))
    #expect(try AgeProgram.run(typing: "sword fish", arguments) == 0)
    #expect(try fileBytes(folder.file("plain")) == plain)
  }

  @Test("we decrypt what age encrypts with a passphrase", arguments: [false, true])
  func isOpenedWithPassphrase(isArmored: Bool) throws {
    let folder = try TemporaryFolder()
    let plain = Ciphers.sample(100_000)
    try folder.write(plain, to: "plain")
    let arguments = ["-p"] + (isArmored ? ["-a"] : []) + ["-o", folder.file("sealed"), folder.file("plain")]
    #expect(try AgeProgram.run(typing: "sword fish", arguments) == 0)
    let decryption = try Decryption(identities: [], passphrase: Array("sword fish".utf8))
    #expect(try Ciphers.decrypt(fileBytes(folder.file("sealed")), with: decryption) == plain)
  }
}
