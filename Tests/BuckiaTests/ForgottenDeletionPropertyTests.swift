import Buckia
import TestSupport
import Testing

/// Random exchanges in which deletions are forgotten. A row that has disappeared at a replica never comes back there.
@Suite struct ForgottenDeletionPropertyTests {
  /// The rows that one person has seen, and those that have disappeared.
  private final class Memory {
    var present: Set<String> = []
    var gone: Set<String> = []
  }

  /// A file in transit.
  private struct Delivery {
    let file: String
    let recipient: Int
  }

  @Test(arguments: Seeds.shards)
  func `with late, repeated and relayed files, no deleted row comes back, and all replicas agree`(shard: Int) throws {
    try Seeds.tryEach(12, shard: shard) { try exchange(seed: $0) }
  }

  private func exchange(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let folder = try TemporaryFolder()
    let people = try ["anna", "ben", "cara"].prefix(seed % 3 == 0 ? 2 : 3).map {
      try NotesPerson($0, in: folder, ordersIDs: false)
    }
    let memories = people.map { _ in Memory() }
    // In a chain, the two outer replicas exchange rows only through the one between them.
    let isChain = seed % 3 == 1
    var travelling: [Delivery] = []
    var made = 0
    var forgotten = 0

    func mayTalk(_ one: Int, _ other: Int) -> Bool { one != other && (!isChain || abs(one - other) == 1) }
    func look(_ place: Int) throws {
      let memory = memories[place]
      let notes = Set(try people[place].rows("SELECT id FROM note"))
      memory.gone.formUnion(memory.present.subtracting(notes))
      #expect(
        memory.gone.isDisjoint(with: notes), "seed \(seed): \(memory.gone.intersection(notes)) at \(people[place].name)"
      )
      memory.present = notes
    }
    func receive(_ place: Int) throws {
      let before = try people[place].rows("SELECT coalesce(sum(through), 0) FROM buckia_collected_tombstone")
      try people[place].receive(expecting: [.applied, .alreadyApplied, .waiting])
      if try before != people[place].rows("SELECT coalesce(sum(through), 0) FROM buckia_collected_tombstone") {
        forgotten += 1
      }
      try look(place)
    }
    func arrive(_ delivery: Delivery) throws { try people[delivery.recipient].deliver(delivery.file) }

    // First, all replicas exchange rows.
    for round in 0..<3 {
      for place in people.indices {
        try people[place].run("INSERT INTO note VALUES ('\(people[place].name) at first \(round)', 'begin')")
        for other in people.indices where mayTalk(place, other) {
          try people[place].share(with: [people[other]])
          try receive(other)
        }
      }
    }
    for _ in 0..<60 {
      let place = Int.random(in: people.indices, using: &generator)
      let person = people[place]
      made += 1
      let order = "ORDER BY id LIMIT 1 OFFSET \(Int.random(in: 0...3, using: &generator))"
      switch Int.random(in: 0...9, using: &generator) {
      case 0...1: try person.run("INSERT INTO note VALUES ('\(person.name) \(made)', 'new')")
      case 2: try person.run("UPDATE note SET title = 'title \(made)' WHERE id = (SELECT id FROM note \(order))")
      case 3: try person.run("DELETE FROM note WHERE id = (SELECT id FROM note \(order))")
      case 4...6:
        guard let other = people.indices.filter({ mayTalk(place, $0) }).randomElement(using: &generator),
          let file = try person.share(with: [people[other]], delivering: false)
        else { break }
        travelling.append(Delivery(file: file, recipient: other))
        if generator.oneIn(4) { travelling.append(Delivery(file: file, recipient: other)) }
      case 7...8:
        guard let next = travelling.indices.randomElement(using: &generator) else { break }
        let delivery = travelling.remove(at: next)
        try arrive(delivery)
        if generator.oneIn(3) { try receive(delivery.recipient) }
      default: try receive(place)
      }
      try look(place)
    }
    for delivery in travelling.shuffled(using: &generator) { try arrive(delivery) }
    for round in 0..<4 {
      for place in people.indices {
        // Each replica has changes to send, and acknowledges all diffs with them.
        try people[place].run("INSERT INTO note VALUES ('\(people[place].name) at last \(round)', 'end')")
        for other in people.indices where mayTalk(place, other) {
          try people[place].share(with: [people[other]])
          try receive(other)
        }
      }
    }
    for _ in 0..<3 {
      for place in people.indices {
        for other in people.indices where mayTalk(place, other) {
          try people[place].share(with: [people[other]])
          try receive(other)
        }
      }
    }
    let notes = try people.map { try $0.notes() }
    #expect(Set(notes).count == 1, "seed \(seed): \(notes)")
    if people.count == 2,
      try people.contains(where: { try !$0.rows("SELECT 1 FROM buckia_row_version WHERE operation = 'delete'").isEmpty }
      )
    {
      #expect(forgotten > 0, "seed \(seed)")
      #expect(try people.map { try $0.deletions() } == [[], []], "seed \(seed)")
    }
  }
}
