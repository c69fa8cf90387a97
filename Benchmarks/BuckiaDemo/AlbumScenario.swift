import Foundation
import SQLiteConnections

/// Anna shares an album with Ben, whom she invites, and then with Cara. All three add photos, a file gets lost, and in the end all have
/// the same.
struct AlbumScenario {
  let workspace: Workspace

  private static let schema = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT);
    CREATE TABLE comment(id INTEGER PRIMARY KEY, photo INTEGER REFERENCES photo(id), text TEXT);
    """
  private static let scope = """
    {"format": 1, "name": "summer", "tables": [
      {"table": "album", "where": "name = 'Summer'"},
      {"table": "photo", "childrenOf": ["album"]},
      {"table": "comment", "childrenOf": ["photo"]}]}
    """

  func perform() throws {
    print("\n== Anna shares an album: end-to-end encrypted, through folders, without a server ==\n")
    for person in Person.allCases { try workspace.run(sql: Self.schema, on: person.database) }
    try workspace.write(Self.scope, to: "summer.json")
    for person in Person.allCases { try workspace.makeFolder(person.inbox) }
    try workspace.run(
      sql: """
        INSERT INTO album VALUES (1, 'Summer'), (2, 'Private');
        INSERT INTO photo VALUES (1, 1, 'beach'), (2, 1, 'sea'), (3, 2, 'secret');
        INSERT INTO comment VALUES (1, 1, 'so warm'), (2, 2, 'so blue');
        """, on: Person.anna.database)
    try workspace.run(
      sql: """
        INSERT INTO album VALUES (1, 'Ben''s own');
        INSERT INTO photo VALUES (1, 1, 'my cat');
        """, on: Person.ben.database)
    print("Each of them makes keys once. Anna invites Ben; scope summer.json names one album of hers.")
    for person in Person.allCases {
      try type(person, "identity", "new", "--name", person.name, isShown: person == .anna)
    }
    try type(.anna, "invite", "anna.db", "--scope", "summer.json", "--to", "Ben", "-o", "ben.invitation")
    print("\nBen accepts it: there is no account anywhere. His answer goes into Anna's folder.")
    try type(.ben, "accept", "ben.db", "ben.invitation", "--yes", "-o", Person.anna.inbox)
    try type(.anna, "apply", "anna.db", Person.anna.inbox, "--trust", "known")
    try type(.anna, "share", "anna.db", "--to", "Ben", "-o", Person.ben.inbox)
    try type(.ben, "apply", "ben.db", Person.ben.inbox, "--trust", "known")
    try show(.ben, "Ben's own photo 1 is still his; what came has got other numbers, and its comments have gone along:")

    print("\nBoth add a photo under the same number, and Ben comments one of Anna's. He shares the album, too:")
    try edit(.anna, "INSERT INTO photo VALUES (4, 1, 'boat')", "INSERT INTO comment(photo, text) VALUES (4, 'by Anna')")
    try edit(
      .ben, "INSERT INTO photo(album, title) SELECT id, 'ice cream' FROM album WHERE name = 'Summer'",
      "INSERT INTO comment(photo, text) SELECT id, 'and so cold' FROM photo WHERE title = 'sea'",
      "UPDATE photo SET title = 'the beach' WHERE title = 'beach'")
    try exchange(.anna, with: [.ben], isShown: false)
    try type(.ben, "share", "ben.db", "--to", "Anna", "--scope", "summer.json", "-o", Person.anna.inbox)
    try type(.anna, "apply", "anna.db", Person.anna.inbox)

    print("\nCara joins: Anna invites her to the same album.")
    try type(
      .anna, "invite", "anna.db", "--scope", "summer.json", "--to", "Cara", "-o", "cara.invitation", isShown: false)
    try type(.cara, "accept", "cara.db", "cara.invitation", "--yes", "-o", Person.anna.inbox, isShown: false)
    try type(.anna, "apply", "anna.db", Person.anna.inbox, isShown: false)
    try type(.anna, "share", "anna.db", "--to", "Cara", "-o", Person.cara.inbox)
    try type(.cara, "apply", "cara.db", Person.cara.inbox, "--trust", "known", isShown: false)
    try edit(.cara, "INSERT INTO comment(photo, text) SELECT id, 'from Cara' FROM photo WHERE title = 'boat'")
    try type(
      .cara, "share", "cara.db", "--to", "Anna", "--scope", "summer.json", "-o", Person.anna.inbox, isShown: false)
    try type(.anna, "apply", "anna.db", Person.anna.inbox, isShown: false)

    print("\nA file for Ben gets lost. The next one waits for it, and says what is missing:")
    try edit(.anna, "INSERT INTO photo(album, title) VALUES (1, 'sunset')")
    try type(.anna, "share", "anna.db", "--to", "Ben", "-o", "lost", isShown: false)
    try edit(.anna, "INSERT INTO photo(album, title) VALUES (1, 'stars')")
    try type(.anna, "share", "anna.db", "--to", "Ben", "-o", Person.ben.inbox)
    try type(.ben, "apply", "ben.db", Person.ben.inbox, expecting: 2)
    print("\nAnna sends everything again; what Ben has changed since stays:")
    try type(.anna, "share", "anna.db", "--to", "Ben", "--resync", "-o", Person.ben.inbox)
    try type(.ben, "apply", "ben.db", Person.ben.inbox)

    for _ in 0..<2 {
      try exchange(.anna, with: [.ben, .cara], isShown: false)
      for person in [Person.ben, .cara] {
        try type(
          person, "share", person.database, "--to", "Anna", "--scope", "summer.json", "-o", Person.anna.inbox,
          isShown: false)
      }
      try type(.anna, "apply", "anna.db", Person.anna.inbox, isShown: false)
    }
    print("\nIn the end all have the same album. Six words for each other person say so; they can be read out loud:")
    try type(.anna, "status", "anna.db", "--words")
    try type(.ben, "status", "ben.db", "--words")
    try type(.cara, "status", "cara.db", "--words")
    try compareWords()
    try check()
  }

  /// Sends what has changed, and applies it.
  private func exchange(_ sender: Person, with others: [Person], isShown: Bool) throws {
    for other in others {
      try type(
        sender, "share", sender.database, "--to", other.name, "--scope", "summer.json", "-o", other.inbox,
        isShown: isShown)
      try type(other, "apply", other.database, other.inbox, isShown: isShown)
    }
  }

  private func edit(_ person: Person, _ statements: String...) throws {
    try workspace.run(sql: statements.joined(separator: ";\n"), on: person.database)
  }

  private func type(_ person: Person, _ arguments: String..., isShown: Bool = true, expecting status: Int32 = 0) throws
  {
    try workspace.type(arguments, as: person.name, isShown: isShown, expecting: status)
  }

  // MARK: Looking

  private static let photos = """
    SELECT p.title, coalesce((SELECT group_concat(text, ', ') FROM
      (SELECT text FROM comment WHERE photo = p.id ORDER BY text)), '')
    FROM photo AS p JOIN album AS a ON a.id = p.album WHERE a.name = 'Summer' ORDER BY p.title
    """

  private func show(_ person: Person, _ heading: String) throws {
    print("\n\(heading)")
    let query = """
      SELECT p.id || '  ' || a.name || ': ' || p.title || coalesce('  "' || c.text || '"', '') FROM photo AS p
      JOIN album AS a ON a.id = p.album LEFT JOIN comment AS c ON c.photo = p.id ORDER BY p.id
      """
    for row in try workspace.rows(query, of: person.database) { print("  \(row)") }
  }

  /// What the words say holds: Ben and Cara have the same ones for Anna as she has for them.
  private func compareWords() throws {
    let annas = try words(of: .anna)
    for person in [Person.ben, .cara] {
      let (hers, theirs) = (annas[person.name] ?? [], try words(of: person)[Person.anna.name] ?? [])
      guard hers.count == 6, hers == theirs else {
        throw DemoError("the words differ: Anna has \(hers), and \(person.name) has \(theirs)")
      }
    }
    print("\nAnna has the same six words for Ben as he has for her, and so it is with Cara.")
  }

  /// The words of somebody's rows, by the names of those with whom they are shared.
  private func words(of person: Person) throws -> [String: [String]] {
    let report = try workspace.report(of: ["status", person.database, "--words"], home: "home-\(person.name)")
    let entries = report["words"] as? [[String: Any]] ?? []
    var found: [String: [String]] = [:]
    for entry in entries {
      if let people = entry["people"] as? String { found[people] = entry["words"] as? [String] }
    }
    return found
  }

  /// All have the same photos with the same comments, and only what was shared has arrived.
  private func check() throws {
    let albums = try Person.allCases.map { try workspace.rows(Self.photos, of: $0.database) }
    print("\nThe album, at each of them:")
    for row in albums[0] { print("  \(row)") }
    guard Set(albums).count == 1 else { throw DemoError("the albums differ: \(albums)") }
    for person in Person.allCases where person != .anna {
      let secrets = try workspace.rows("SELECT title FROM photo WHERE title = 'secret'", of: person.database)
      guard secrets.isEmpty else { throw DemoError("\(person.name) has got a photo that was not shared") }
    }
    guard
      try workspace.rows("SELECT id || title FROM photo WHERE title = 'my cat'", of: Person.ben.database) == ["1my cat"]
    else { throw DemoError("Ben's own photo has changed") }
    let orphans = try Person.allCases.flatMap { try workspace.rows("PRAGMA foreign_key_check", of: $0.database) }
    guard orphans.isEmpty else { throw DemoError("rows refer to others that are not there: \(orphans)") }
    print("\nCompared row by row: all three are equal, and Anna's private album stayed with her.")
  }
}

/// Who takes part.
private enum Person: String, CaseIterable {
  case anna, ben, cara

  var name: String { rawValue.prefix(1).uppercased() + rawValue.dropFirst() }
  var database: String { "\(rawValue).db" }
  /// The folder that others write to.
  var inbox: String { "for-\(rawValue)" }
}
