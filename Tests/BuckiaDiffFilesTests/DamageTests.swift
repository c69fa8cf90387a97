import SQLiteChangesets
import Testing

@testable import BuckiaDiffFiles

@Suite struct DamageTests {
  private func sample(_ folder: TemporaryFolder, signed: Bool = false) throws -> [UInt8] {
    var writer = DiffFileWriter()
    if signed { writer.signer = try Sample.signer() }
    let path = folder.file("sound")
    try writer.write(
      signed ? try Sample.fullDraft() : Sample.plainDraft, changeset: ChangesetSpool(Sample.changeset), to: path)
    return try bytes(at: path)
  }

  @Test func `Cut off at any length it is refused`() throws {
    let folder = try TemporaryFolder()
    let sound = try sample(folder)
    for length in 0..<sound.count {
      let path = try folder.write(Array(sound[..<length]), as: "cut")
      let error = try #require(refusal(at: path), "\(length) of \(sound.count) bytes were accepted")
      #expect(error.code == .truncated, "\(length): \(error)")
      #expect(error.path == path)
    }
  }

  @Test(arguments: 0..<8)
  func `With any single bit flipped it is refused`(bit: Int) throws {
    let folder = try TemporaryFolder()
    let sound = try sample(folder)
    for index in sound.indices {
      var damaged = sound
      damaged[index] ^= 1 << bit
      let path = try folder.write(damaged, as: "flipped")
      #expect(refusal(at: path) != nil, "bit \(bit) of byte \(index) may flip unnoticed")
    }
  }

  @Test(arguments: [0xff, 0x55] as [UInt8])
  func `With any single byte of a signed diff changed it is refused`(mask: UInt8) throws {
    let folder = try TemporaryFolder()
    let sound = try sample(folder, signed: true)
    for index in sound.indices {
      var damaged = sound
      damaged[index] ^= mask
      let path = try folder.write(damaged, as: "flipped")
      #expect(refusal(at: path) != nil, "byte \(index) may change unnoticed")
    }
  }
}
