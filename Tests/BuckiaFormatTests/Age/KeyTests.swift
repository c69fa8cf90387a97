import BuckiaFormat
import Testing

@Suite("Recipients and identities")
struct KeyTests {
  /// From the specification, <https://c2sp.org/age>.
  static let identity = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
  static let recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

  @Test("the specification's identity has the specification's recipient")
  func knownPair() throws {
    let identity = try AgeIdentity(parsing: Self.identity)
    #expect(try identity.makeRecipient().description == Self.recipient)
    #expect(identity.secretText == Self.identity)
    #expect("\(identity)" == "an identity")
    #expect(try AgeRecipient(parsing: Self.recipient).description == Self.recipient)
  }

  @Test("new identities differ, and can be written and read", arguments: [false, true])
  func newOnes(isQuantumSafe: Bool) throws {
    let identity = AgeIdentity(quantumSafe: isQuantumSafe)
    let recipient = try identity.makeRecipient()
    #expect(recipient.isQuantumSafe == isQuantumSafe)
    #expect(try AgeIdentity(parsing: identity.secretText).makeRecipient() == recipient)
    #expect(try AgeRecipient(parsing: recipient.description) == recipient)
    #expect(try AgeIdentity(quantumSafe: isQuantumSafe).makeRecipient() != recipient)
  }

  @Test(
    "an invalid recipient is refused",
    arguments: [
      "", "age1", "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwk",
      "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj ",
      "Age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj", recipient.uppercased(),
      // Another kind, and a key that is too short.
      "age1tag1qt8lw0ual6avlwmwatk888yqnmdamm7xfd0wak53ut6elz5c4swx2yqdj4e", "age1qqqsyqcyq5rqwzqf20xxpc",
      "ssh-ed25519 AAAA",
    ])
  func noRecipients(text: String) {
    let error = #expect(throws: IdentityError.self) { try AgeRecipient(parsing: text) }
    #expect(error?.code == .invalidRecipient)
  }

  @Test("an invalid identity is refused", arguments: ["", identity.lowercased(), recipient, identity + "Q"])
  func noIdentities(text: String) {
    let error = #expect(throws: IdentityError.self) { try AgeIdentity(parsing: text) }
    #expect(error?.code == .invalidIdentity)
  }

  @Test("an identity given as a recipient is not shown")
  func secretAsRecipient() {
    let error = #expect(throws: IdentityError.self) { try AgeRecipient(parsing: Self.identity) }
    #expect(error?.description == "this is a secret identity and no recipient: use the age1… that belongs to it")
  }

  @Test("a file of identities may have comments, empty lines and any line endings")
  func file() throws {
    let text = "# created: now\r\n\r\n\(Self.identity)\r\n# another\n\(AgeIdentity().secretText)"
    #expect(try AgeIdentity.all(inFile: Array(text.utf8)).count == 2)
  }

  @Test("an invalid line is named by number and not shown")
  func wrongLine() {
    let error = #expect(throws: IdentityError.self) { try AgeIdentity.all(inFile: Array("# one\nsecret\n".utf8)) }
    #expect(
      error?.description
        == "line 2: it is no identity: those begin with AGE-SECRET-KEY-1 or AGE-SECRET-KEY-PQ-1")
    let empty = #expect(throws: IdentityError.self) { try AgeIdentity.all(inFile: Array("# one\n".utf8)) }
    #expect(empty?.description == "there is no identity in it")
  }

  @Test("no recipients, too many, and recipients of both strengths are refused")
  func combinations() throws {
    let classical = try AgeIdentity().makeRecipient()
    let safe = try AgeIdentity(quantumSafe: true).makeRecipient()
    #expect(#expect(throws: IdentityError.self) { try Encryption(to: []) }?.code == .noRecipients)
    #expect(#expect(throws: IdentityError.self) { try Encryption(to: [classical, safe]) }?.code == .mixedRecipients)
    let many = try (0..<65).map { _ in try AgeIdentity().makeRecipient() }
    #expect(#expect(throws: IdentityError.self) { try Encryption(to: many) }?.code == .tooManyRecipients)
    #expect(#expect(throws: IdentityError.self) { try Encryption(passphrase: []) }?.code == .emptyPassphrase)
    _ = try Encryption(to: [AgeRecipient](repeating: classical, count: 65))
  }
}
