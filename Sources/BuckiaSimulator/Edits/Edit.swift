/// Something that a person does with an app: one transaction on one replica.
///
/// ```swift
/// let rename = Edit("rename a note") { database, random in
///   guard let note = random.pick(try database.rows("SELECT id FROM notes ORDER BY id")) else { return }
///   try database.run("UPDATE notes SET title = ?2 WHERE id = ?1", note[0], .text("title \(random.number(1...99))"))
/// }
/// ```
///
/// All that is random has to come from the generator that the edit is given. A query without ORDER BY may give its rows in another
/// order another time.
public struct Edit: Sendable {
  /// What is done with the database.
  typealias Body = @Sendable (SimulatedDatabase, inout SimulationRandom) throws -> Void

  /// Its name, which histories mention.
  public let name: String
  /// How often it is drawn, compared with the others.
  public var weight: Int
  /// nil for edits that are made from the schema.
  let body: Body?

  private init(_ name: String, weight: Int, body: Body?) {
    self.name = name
    self.weight = weight
    self.body = body
  }

  /// Makes an edit of the app's own.
  ///
  /// - Parameters:
  ///   - name: Its name, which histories mention.
  ///   - weight: How often it is drawn, compared with the others.
  ///   - body: Changes the database of a replica. An error of SQLite that it throws on, such as of a constraint, takes all of it back;
  ///     any other ends the simulation.
  public init(
    _ name: String, weight: Int = 1,
    _ body: @escaping @Sendable (SimulatedDatabase, inout SimulationRandom) throws -> Void
  ) {
    self.init(name, weight: weight, body: body)
  }

  /// Edits that are made from the schema: rows are inserted, updated and deleted, and get other keys, in any table. Foreign keys mostly
  /// refer to rows that are there. Values are of all kinds: NULL, floats, blobs, empty ones and long ones.
  public static let random = Edit("random", weight: 1, body: nil)
}
