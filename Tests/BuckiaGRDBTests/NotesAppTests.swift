#if GRDB
  import Foundation
  import TestSupport
  import Testing

  @Suite("The example: notes that two people exchange through a folder")
  struct NotesAppTests {
    private struct Person {
      let name: String
      let folder: TemporaryFolder

      /// Runs the program, and returns its output.
      @discardableResult
      func notes(_ arguments: String...) throws -> [String] {
        let run = try ProgramRun(
          BuiltProduct.path(of: "GRDBNotes"), [folder.file(name), folder.file("shared")] + arguments)
        try #require(run.hasSucceeded, "\(name): \(arguments): \(run.text)")
        return run.output.split(separator: "\n").map(String.init)
      }
    }

    /// Two people who are each other's contacts.
    private func people() throws -> (anna: Person, ben: Person) {
      let folder = try TemporaryFolder()
      try folder.makeFolder("shared")
      let (anna, ben) = (Person(name: "Anna", folder: folder), Person(name: "Ben", folder: folder))
      for person in [anna, ben] { try person.notes("join", person.name) }
      for (one, other) in [(anna, ben), (ben, anna)] {
        let line = try #require(try one.notes("meet", other.name).first)
        let fingerprint = try #require(line.split(separator: " ").last.map(String.init))
        #expect(try one.notes("meet", other.name, fingerprint) == ["\(other.name) is trusted"])
      }
      return (anna, ben)
    }

    @Test("Both add, edit and delete, exchange through the folder, and have the same notes")
    func exchange() throws {
      let (anna, ben) = try people()
      try anna.notes("add", "Paint", "the", "boat")
      try anna.notes("add", "Mend the radio")
      try ben.notes("add", "Buy rope")
      #expect(try anna.notes("exchange").isEmpty, "nothing has come that would be shown")
      #expect(
        try ben.notes("exchange").map { $0.drop { $0 != " " }.trimmingCharacters(in: .whitespaces) }.sorted()
          == ["Buy rope", "Mend the radio", "Paint the boat"])
      try anna.notes("exchange")
      let both = try anna.notes("list")
      #expect(both.count == 3)
      #expect(try ben.notes("list") == both)

      // Both edit the same note, and Ben deletes another.
      try anna.notes("edit", "1", "Paint the boat red")
      try ben.notes("edit", "1", "Paint the boat blue")
      try ben.notes("remove", "2")
      try anna.notes("add", "Call the harbour")
      for person in [anna, ben, anna, ben, anna] { try person.notes("exchange") }
      let last = try anna.notes("list")
      #expect(last.count == 3)
      #expect(last.first?.hasPrefix("1  Paint the boat ") == true)
      #expect(!last.contains { $0.hasSuffix("Mend the radio") })
      #expect(try ben.notes("list") == last)
      #expect(try anna.notes("log").allSatisfy { $0.contains(": applied, ") || $0.hasPrefix("conflict ") })
    }

    @Test("Diffs from an untrusted sender are not applied")
    func stranger() throws {
      let (anna, ben) = try people()
      let carla = Person(name: "Carla", folder: anna.folder)
      try carla.notes("join", "Carla")
      let line = try #require(try carla.notes("meet", "Anna").first)
      try carla.notes("meet", "Anna", try #require(line.split(separator: " ").last.map(String.init)))
      try carla.notes("add", "Give me your keys")
      try carla.notes("exchange")
      try anna.notes("exchange")
      #expect(try anna.notes("list").isEmpty)
      #expect(try ben.notes("list").isEmpty)
    }
  }
#endif
