import SQLiteChangesets
import Testing

@testable import BuckiaFormat
import TestSupport

/// Files damaged on their way.
///
/// Not every bit of compressed data has a meaning: a match in a run of zeros may start elsewhere. So a flipped bit is
/// either refused or changes nothing that is read.
@Suite struct DamageTests {
  /// As small as possible, because every bit of it is tried.
  private static let small = FileSpec(
    tables: [.log()], schema: [Sample.log],
    changes: [TableChanges(Sample.log.name, key: [1, 0], [.insert([7, "a line"])])])
  private static let signed = FileSpec(
    manifest: Sample.fullManifest, tables: [.notes(withdrawn: 1), .log()], annotations: Sample.annotations,
    files: [("a.txt", ""), ("b/photo.txt", "not really")], isSigned: true)

  /// True if a damaged file is refused, or read like the intact one.
  private func isHarmless(_ damaged: [UInt8], _ sound: ReadFile) -> Bool {
    do { return try ReadFile(damaged) == sound } catch { return error is DiffFileError }
  }

  @Test("A file truncated at any length is refused")
  func truncation() throws {
    let sound = try Self.small.written()
    for length in 0..<sound.count {
      let error = try #require(
        refusal(of: Array(sound[..<length])), "\(length) of \(sound.count) bytes were accepted")
      #expect(error.code == .truncated, "\(length): \(error)")
    }
  }

  @Test("A file with any single bit flipped is refused or read as before", arguments: 0..<8)
  func flippedBits(bit: Int) throws {
    let bytes = try Self.small.written()
    let sound = try ReadFile(bytes)
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= 1 << bit
      #expect(isHarmless(damaged, sound), "bit \(bit) of byte \(index) changes what is read")
    }
  }

  @Test(
    "A signed diff with any single byte changed is refused or read as before", arguments: [0xff, 0x55] as [UInt8])
  func changedBytes(mask: UInt8) throws {
    let bytes = try Self.signed.written()
    let sound = try ReadFile(bytes)
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= mask
      #expect(isHarmless(damaged, sound), "byte \(index) changes what is read")
    }
  }

  @Test("A random file with random damage is refused or read as before")
  func randomDamage() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    for round in 0..<20 {
      let rows = (0..<Int64.random(in: 1...200, using: &generator)).map { row in
        TableChanges.Row.insert([.integer(row), .text(String(repeating: "x", count: Int(row) * round))])
      }
      let file = FileSpec(
        tables: [Manifest.Table(name: "t", columns: 2, inserted: Int64(rows.count))], schema: nil,
        changes: [TableChanges("t", key: [1, 0], rows)])
      let bytes = try file.written(level: Int.random(in: 1...6, using: &generator))
      let sound = try ReadFile(bytes)
      for _ in 0..<40 {
        var damaged = bytes
        let index = Int.random(in: damaged.indices, using: &generator)
        damaged[index] ^= UInt8.random(in: 1...255, using: &generator)
        #expect(isHarmless(damaged, sound), "seed \(seed), round \(round), byte \(index)")
      }
    }
  }
}
