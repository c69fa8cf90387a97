/// Where the columns of a table stand, for whoever looks up all of them: a table may have 2,000.
public struct ColumnLookup: Sendable {
  /// From how many columns on it is quicker to look names up than to go through them.
  private static let listLimit = 16

  private var names: [String]
  /// The places by the names' bytes, ASCII letters folded; empty while there are few.
  private var places: [[UInt8]: Int] = [:]

  /// Takes the columns of a table in their order.
  public init(_ columns: [ColumnDefinition]) {
    names = columns.map(\.name)
    if names.count > Self.listLimit { addAll() }
  }

  /// Adds a column behind the others.
  public mutating func append(_ name: String) {
    names.append(name)
    if !places.isEmpty {
      add(names.count - 1)
    } else if names.count > Self.listLimit {
      addAll()
    }
  }

  private mutating func addAll() { for place in names.indices { add(place) } }

  private mutating func add(_ place: Int) {
    let key = names[place].utf8.map(ASCIIName.folded)
    if places[key] == nil { places[key] = place }
  }

  /// The place of the column of that name, whatever its case; the first where there are several.
  public subscript(name: String) -> Int? {
    if places.isEmpty { return names.firstIndex { ASCIIName.matches($0, name) } }
    return places[name.utf8.map(ASCIIName.folded)]
  }
}
