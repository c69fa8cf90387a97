/// Something in the schemas of two databases that both have changed since their common base, each in another way.
///
/// What the receiving side has stays as it is.
public struct SchemaConflict: Equatable, Sendable, CustomStringConvertible {
  /// What the two sides have done.
  public enum Kind: String, Sendable, CaseIterable {
    /// Both have changed it, or both have made it, differently.
    case bothChanged = "both-changed"
    /// It was dropped here, and changed on the other side. A table or column is there again, with the values of the other side.
    case droppedHere = "dropped-here"
    /// It was changed here, and dropped on the other side. It stays.
    case droppedThere = "dropped-there"
  }

  /// What the two sides have done.
  public let kind: Kind
  /// What it is: `table`, `column`, `index`, `view` or `trigger`.
  public let object: String
  /// Its name; of a column with that of its table, as `table.column`.
  public let name: String

  /// Makes a conflict.
  package init(_ kind: Kind, _ object: String, _ name: String) {
    self.kind = kind
    self.object = object
    self.name = name
  }

  init(_ kind: Kind, _ statement: SchemaStatement) {
    self.init(kind, statement.kind.rawValue, statement.name.text)
  }

  /// A sentence for people.
  public var description: String {
    switch kind {
    case .bothChanged: "both sides have changed the \(object) \"\(name)\" differently; the one that is here stays"
    case .droppedHere:
      "the \(object) \"\(name)\" was dropped here, and the other side has changed it; "
        + (["table", "column"].contains(object)
          ? "it is here again, with the values of the other side" : "it stays dropped")
    case .droppedThere: "the other side has dropped the \(object) \"\(name)\", which was changed here; it stays"
    }
  }
}
