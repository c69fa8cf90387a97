import SQLiteChangesets
import Testing
import TestSupport

/// Damaged bytes through every operation: an error or a valid result, never a crash.
@Suite("Hostile bytes")
struct HostileBytesTests {
  private static let samples: [[UInt8]] = [
    changeset(
      key: [0, 1, 0], .insert(["a", 1, nil]), .delete(["b", 2, 1.5]),
      .update(old: ["c", 3, .undefined], new: ["d", .undefined, .undefined]), .insert(["x", 2.0, [1, 2]]))
      + changeset("other", key: [2, 1], .delete([[1], "key"]), .insert([[1], "key"])),
    changeset(
      key: [1, 0, 0], format: .patchset, .patchUpdate([1, "x", .undefined]), .patchDelete([2]), .insert([3, nil, "y"]),
      .patchDelete([3]))
      + changeset("other", key: [1], format: .patchset, .insert(["text"])),
    changeset(.insert([1, .text(String(repeating: "long ", count: 40))]), .update(old: [1, 2], new: [.undefined, 3]))
      + changeset("NOTES", .delete([1, 2]), .insert([5, 6])),
  ]

  @Test("changesets truncated at every length", arguments: samples.indices)
  func truncations(sample: Int) {
    let bytes = Self.samples[sample]
    for count in bytes.indices { checkAll(Array(bytes[..<count]), "cut to \(count)") }
  }

  @Test("every byte replaced by each byte with a meaning", arguments: samples.indices)
  func replacements(sample: Int) {
    let bytes = Self.samples[sample]
    for place in bytes.indices {
      for value in [0, 1, 2, 3, 4, 5, 9, 18, 23, 0x50, 0x54, 0x7f, 0x80, 0xff] as [UInt8] {
        var damaged = bytes
        damaged[place] = value
        checkAll(damaged, "byte \(place) as \(value)")
      }
    }
  }

  @Test("random flips, insertions, removals and repetitions", arguments: 0..<8 as Range<UInt64>)
  func randomDamage(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for round in 0..<400 {
      var bytes = Self.samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
        let place = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
        case 3: bytes.remove(at: place)
        default:
          let end = Int.random(in: place...bytes.count, using: &random)
          bytes.insert(contentsOf: bytes[place..<end], at: Int.random(in: bytes.indices, using: &random))
        }
      }
      checkAll(bytes, "seed \(seed), round \(round)")
    }
  }

  @Test("random bytes after a header", arguments: 0..<4 as Range<UInt64>)
  func randomBytes(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let likely: [UInt8] = [0, 1, 2, 3, 4, 5, 9, 18, 23, 0x50, 0x54]
    for round in 0..<400 {
      var bytes = changeset(key: [1])
      for _ in 0..<Int.random(in: 0..<60, using: &random) {
        bytes.append(
          Bool.random(using: &random)
            ? likely.randomElement(using: &random) ?? 0 : UInt8.random(in: 0...255, using: &random))
      }
      checkAll(bytes, "seed \(seed), round \(round)")
    }
  }

  @Test("huge lengths and counts allocate no memory")
  func claims() {
    let maximum: [UInt8] = [0x87, 0xff, 0xff, 0xff, 0x7f]  // 2^31 - 1
    for kind in [3, 4] as [UInt8] { checkAll(changeset(key: [1]) + [18, 0, kind] + maximum, "kind \(kind)") }
    checkAll([0x54, 0x84, 0x80, 0x00], "65,536 columns and nothing else")
    // 65,536 columns, of which each DELETE of a patchset has one: ten bytes must not cost 65,536 steps each.
    let wide = ChangesetTable(
      name: "wide", format: .patchset, keyFlags: [UInt8](repeating: 0, count: 65_535) + [1])
    let deletes = changeset(wide, (0..<20_000).map { .patchDelete([.integer($0 % 7)]) })
    #expect(throws: Never.self) { try Changesets.sorted(deletes) }
    // Many headers, each for another table.
    var writer = ChangesetWriter()
    for number in 0..<2000 {
      writer.beginTable(ChangesetTable(name: "t\(number)", keyFlags: [1]))
      writer.append(.insert([.integer(Int64(number))]))
    }
    checkAll(writer.bytes, "2,000 tables")
  }

  /// Runs all operations; accepted bytes must be consistent, and mean the same to SQLite.
  private func checkAll(_ bytes: [UInt8], _ note: String) {
    do {
      let changes = try wholeChanges(bytes)
      let summary = changesetErrorOr { try ChangesetSummary.of(bytes) }
      if let summary {
        #expect(summary.changeCount == changes.count, "\(note)")
        let sorted = try Changesets.sorted(bytes)
        #expect(try wholeChanges(sorted).count == changes.count, "\(note)")
        #expect(try Changesets.sorted(sorted) == sorted, "\(note)")
        let joined = try Changesets.concatenated(bytes, bytes)
        #expect(try Changesets.concatenated(joined) == joined, "\(note)")
        #expect(try ChangesetSummary.of(joined).changeCount <= changes.count, "\(note)")
      } else {
        #expect(throws: ChangesetError.self, "\(note)") { try Changesets.sorted(bytes) }
        #expect(throws: ChangesetError.self, "\(note)") { try Changesets.concatenated(bytes) }
      }
      if let inverse = changesetErrorOr({ try Changesets.inverted(bytes) }) {
        let again = try Changesets.inverted(inverse)
        #expect(try Changesets.inverted(again) == inverse, "\(note)")
        #expect(try wholeChanges(inverse).count == changes.count, "\(note)")
      }
    } catch is ChangesetError {
      // The bytes are no changeset: every operation must report it.
      #expect(throws: ChangesetError.self, "\(note)") { try ChangesetSummary.of(bytes) }
      #expect(throws: ChangesetError.self, "\(note)") { try Changesets.sorted(bytes) }
      #expect(throws: ChangesetError.self, "\(note)") { try Changesets.inverted(bytes) }
      #expect(throws: ChangesetError.self, "\(note)") { try Changesets.concatenated(bytes) }
    } catch {
      Issue.record("\(note): \(error)")
    }
  }

  private func changesetErrorOr<Value>(_ body: () throws -> Value) -> Value? {
    do { return try body() } catch is ChangesetError { return nil } catch {
      Issue.record("not a ChangesetError: \(error)")
      return nil
    }
  }
}
