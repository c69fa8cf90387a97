import SQLiteChangesets
import Testing

@testable import BuckiaDiffFiles
import TestSupport

@Suite struct DamageTests {
  private func sample(_ folder: TemporaryFolder, signed: Bool = false) throws -> [UInt8] {
    var writer = DiffFileWriter()
    if signed { writer.signer = try Sample.signer() }
    let path = folder.file("sound")
    if signed {
      try writer.write(try Sample.fullDraft(), changeset: ChangesetSpool(Sample.changeset), to: path)
    } else {
      // As small as can be, since every bit of it is tried.
      var changes = ChangesetWriter()
      changes.beginTable(ChangesetTable(name: Sample.log.name, keyFlags: [1, 0]))
      changes.beginChange(.insert)
      changes.append(integer: 7)
      changes.append(text: "a line")
      let draft = DiffFileDraft(manifest: Manifest(id: Sample.id), schema: .included([Sample.log]))
      try writer.write(draft, changeset: ChangesetSpool(changes.bytes), to: path)
    }
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

  @Test func `Whatever the lengths of the seal are, no bit of it may flip`() throws {
    // Copies of four zeros passed for a repeated zero and an empty block, when the seal still had such blocks.
    let folder = try TemporaryFolder()
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    for round in 0..<4 {
      var changes = ChangesetWriter()
      changes.beginTable(ChangesetTable(name: "t", keyFlags: [1]))
      changes.beginChange(.insert)
      changes.append(integer: Int64(bitPattern: generator.next()))
      let draft = DiffFileDraft(manifest: Manifest(id: Sample.id), schema: .absent)
      let path = folder.file("round-\(round)")
      try DiffFileWriter().write(draft, changeset: ChangesetSpool(changes.bytes), to: path)
      let sound = try bytes(at: path)
      for index in (sound.count - 44)..<sound.count {
        for bit in 0..<8 {
          var damaged = sound
          damaged[index] ^= 1 << bit
          let flipped = try folder.write(damaged, as: "flipped")
          #expect(refusal(at: flipped) != nil, "seed \(seed), round \(round), byte \(index), bit \(bit)")
        }
      }
    }
  }
}
