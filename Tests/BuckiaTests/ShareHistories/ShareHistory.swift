import TestSupport

/// A random history of people who share with each other from the first step, made from a seed. Steps select persons,
/// rows and files by numbers modulo their count, so each step can be left out.
struct ShareHistory: Sendable {
  /// The tables that all people have.
  enum Schema: String, CaseIterable, Sendable {
    case text, integer, unique, keyless, albums, textAlbums, cascading, settingNull, links, folders, nullKeys, caseless,
      keylessPhotos
  }

  /// The policy of all people. Only `latestByClocks` has clocks before the first edit.
  enum Policy: String, CaseIterable, Sendable {
    case keepLocal, takeIncoming, latest, latestByClocks
  }

  /// The beginning: who has rows, and how people got their databases.
  enum Beginning: String, CaseIterable, Sendable {
    case empty, oneHasRows, eachHasRows, copies, copiesOfDataset, invitation, lateComer
  }

  /// With whom each person shares, and which rows.
  enum Sharing: String, CaseIterable, Sendable {
    case one, all, mixed, topics
  }

  /// The action of a step.
  enum Action: String, CaseIterable, Sendable {
    case edit, share, apply, applyOne, applyAgain, resync, keep, undo, backUp, restore, rotate, confirm, move, join
  }

  /// A step of a history.
  struct Step: Sendable {
    var action: Action
    /// The number of the person who acts, modulo the number of people.
    var person: Int
    /// The distance to the number of the other person, modulo the number of people.
    var other: Int
    /// Selects among the rows, files or people that exist then.
    var choice: UInt64
  }

  var seed: UInt64
  var people: Int
  var schema: Schema
  var policy: Policy
  var beginning: Beginning
  var sharing: Sharing
  var isEncrypted: Bool
  var onlyKnown: Bool
  /// True if edits are recorded as they are made.
  var isRecorded: Bool { seed % 4 == 3 }
  /// How many seconds each person's clock is ahead.
  var skews: [Int64]
  var steps: [Step] = []

  init(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    func pick<Choice>(_ choices: [Choice]) -> Choice { choices[Int.random(in: choices.indices, using: &random)] }
    self.seed = seed
    people = pick([2, 2, 2, 2, 2, 3, 3, 3, 4, 5])
    schema = pick(Schema.allCases)
    policy = pick(Policy.allCases)
    beginning = pick(Beginning.allCases + [.oneHasRows, .oneHasRows, .empty])
    sharing = pick(Sharing.allCases + [.one, .one, .all])
    isEncrypted = random.oneIn(8)
    onlyKnown = random.oneIn(2)
    let differ = random.oneIn(2)
    skews = (0..<people).map { _ in differ ? Int64.random(in: 0...30, using: &random) : 0 }
    func add(_ action: Action, by person: Int? = nil) {
      let step = Step(
        action: action, person: person ?? Int.random(in: 0..<people, using: &random),
        other: Int.random(in: 1..<people, using: &random), choice: random.next())
      steps.append(step)
    }
    switch beginning {
    case .empty: break
    case .eachHasRows: for person in 0..<people { for _ in 0..<pick([1, 2, 3]) { add(.edit, by: person) } }
    default: for _ in 0..<pick([2, 3, 4, 5]) { add(.edit, by: 0) }
    }
    // Often one person shares, and the others apply, edit and delete before they share themselves.
    if random.oneIn(2) {
      for person in 1..<people { steps.append(Step(action: .share, person: 0, other: person, choice: random.next())) }
      for person in 1..<people { add(.apply, by: person) }
      for _ in 0..<pick([2, 4, 8]) { add(.edit, by: Int.random(in: 1..<people, using: &random)) }
    }
    // One history in three has rare events, so that all checks apply to most histories.
    let rare: [Action] =
      random.oneIn(3) ? [.resync, .keep, .undo, .backUp, .restore, .restore, .rotate, .confirm, .move] : []
    for _ in 0..<pick([6, 12, 24, 36]) {
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<55: add(.edit)
      case 55..<74: add(.share)
      case 74..<84: add(.apply)
      case 84..<90: add(.applyOne)
      case 90..<92: add(.applyAgain)
      case 92..<95 where !rare.isEmpty: add(pick(rare))
      default: add(.apply)
      }
    }
    if beginning == .lateComer {
      steps.insert(Step(action: .join, person: people - 1, other: 1, choice: random.next()), at: steps.count * 2 / 3)
    }
  }

  /// True if a step has one of these actions.
  func has(_ actions: Action...) -> Bool { steps.contains { actions.contains($0.action) } }

  /// The shortest history that leaving out steps finds, and that still fails in the same way.
  func shrunk(_ tries: Int = 200, fails: (ShareHistory) -> Bool) -> ShareHistory {
    var best = self
    var left = tries
    var length = max(1, steps.count / 2)
    while left > 0 {
      var start = 0
      var hasShrunk = false
      while start < best.steps.count, left > 0 {
        var shorter = best
        shorter.steps.removeSubrange(start..<min(start + length, best.steps.count))
        left -= 1
        if fails(shorter) {
          best = shorter
          hasShrunk = true
        } else {
          start += length
        }
      }
      if length == 1, !hasShrunk { break }
      length = max(1, length / 2)
    }
    return best
  }
}

extension ShareHistory: CustomStringConvertible {
  var description: String {
    "seed \(seed): \(people) people, \(schema), \(policy), \(beginning), sharing \(sharing)\(isEncrypted ? ", encrypted" : "")\(isRecorded ? ", recorded" : "")"
  }
}

extension ShareHistory.Schema {
  /// The statements that make the tables. `a` and `b` are values, `topic` never changes, `id` is a key, and any other
  /// column has the name of the table whose `id` it refers to.
  var sql: String {
    switch self {
    case .text: "CREATE TABLE note(id TEXT PRIMARY KEY, a, b, topic)"
    case .integer: "CREATE TABLE note(id INTEGER PRIMARY KEY, a, b, topic)"
    case .unique: "CREATE TABLE note(id INTEGER PRIMARY KEY, a UNIQUE, b, topic)"
    case .keyless: "CREATE TABLE note(a, b, topic)"
    case .nullKeys: "CREATE TABLE note(id TEXT, part INTEGER, a, b, topic, PRIMARY KEY(id, part))"
    case .caseless: "CREATE TABLE note(id TEXT COLLATE NOCASE PRIMARY KEY, a, b, topic)"
    case .folders: "CREATE TABLE folder(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder(id), a, b, topic)"
    case .albums: Self.albums("INTEGER", "")
    case .textAlbums: Self.albums("TEXT", "")
    case .cascading: Self.albums("INTEGER", "ON DELETE CASCADE")
    case .settingNull: Self.albums("INTEGER", "ON DELETE SET NULL")
    case .keylessPhotos:
      """
      CREATE TABLE album(id INTEGER PRIMARY KEY, a, b, topic);
      CREATE TABLE photo(album INTEGER REFERENCES album(id), a, b, topic)
      """
    case .links:
      """
      CREATE TABLE photo(id INTEGER PRIMARY KEY, a, b, topic); CREATE TABLE tag(id INTEGER PRIMARY KEY, a, b, topic);
      CREATE TABLE link(photo INTEGER REFERENCES photo(id), tag INTEGER REFERENCES tag(id), a, b, topic,
        PRIMARY KEY(photo, tag))
      """
    }
  }

  private static func albums(_ type: String, _ action: String) -> String {
    """
    CREATE TABLE album(id \(type) PRIMARY KEY, a, b, topic);
    CREATE TABLE photo(id \(type) PRIMARY KEY, album \(type) REFERENCES album(id) \(action), a, b, topic)
    """
  }

  /// The tables and their columns.
  var tables: [(name: String, columns: [String])] {
    switch self {
    case .keyless: [("note", ["a", "b", "topic"])]
    case .text, .integer, .unique, .caseless: [("note", ["id", "a", "b", "topic"])]
    case .nullKeys: [("note", ["id", "part", "a", "b", "topic"])]
    case .folders: [("folder", ["id", "folder", "a", "b", "topic"])]
    case .albums, .textAlbums, .cascading, .settingNull:
      [("album", ["id", "a", "b", "topic"]), ("photo", ["id", "album", "a", "b", "topic"])]
    case .keylessPhotos: [("album", ["id", "a", "b", "topic"]), ("photo", ["album", "a", "b", "topic"])]
    case .links:
      [
        ("photo", ["id", "a", "b", "topic"]), ("tag", ["id", "a", "b", "topic"]),
        ("link", ["photo", "tag", "a", "b", "topic"]),
      ]
    }
  }

  /// True if the keys are texts, which name the same row at every replica.
  var hasTextKeys: Bool { [.text, .textAlbums, .nullKeys, .caseless].contains(self) }

  /// The table that a column refers to; nil if the column is no reference.
  func parent(of column: String) -> String? { ["album", "photo", "tag", "folder"].first { $0 == column } }
}
