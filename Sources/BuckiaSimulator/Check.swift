/// Something of your own that has to hold on each replica, all the time: after each edit, and whenever diffs were applied.
///
/// ```swift
/// let check = Check("No note without a title") { database in
///   let count = try database.rows("SELECT count(*) FROM notes WHERE title IS NULL")[0][0]
///   return count == 0 ? nil : "\(count) notes have none"
/// }
/// ```
public struct Check: Sendable {
  /// What holds, in plain words.
  public let name: String
  let body: @Sendable (SimulatedDatabase) throws -> String?

  /// Makes a check.
  ///
  /// - Parameters:
  ///   - name: What holds, in plain words.
  ///   - body: Looks into the database of a replica, and says what is wrong; nil if nothing is. It must not change anything.
  public init(_ name: String, _ body: @escaping @Sendable (SimulatedDatabase) throws -> String?) {
    self.name = name
    self.body = body
  }
}
