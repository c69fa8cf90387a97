import BuckiaBytes

/// Finds the columns of a table by name, in constant time for tables with many columns.
package struct ColumnLookup: Sendable {
  /// The number of columns, and of lookups, up to which linear searches are faster than making a dictionary.
  private static let listLimit = 16

  private var names: [String]
  /// The indexes of the columns by the bytes of their names in lower case; empty where it is not worth making them.
  private var indexes: [[UInt8]: Int] = [:]
  private let lookups: Int

  /// Creates a lookup for the columns of a table.
  ///
  /// - Parameters:
  ///   - columns: The columns.
  ///   - lookups: How many names will be looked for, if that is known.
  package init(_ columns: [ColumnDefinition], for lookups: Int = .max) {
    names = columns.map(\.name)
    self.lookups = lookups
    if isWorthIndexing { addAll() }
  }

  private var isWorthIndexing: Bool { min(names.count, lookups) > Self.listLimit }

  /// Appends a column.
  package mutating func append(_ name: String) {
    names.append(name)
    if !indexes.isEmpty {
      add(names.count - 1)
    } else if isWorthIndexing {
      addAll()
    }
  }

  private mutating func addAll() { for index in names.indices { add(index) } }

  private mutating func add(_ index: Int) {
    let key = names[index].utf8.map(ASCIIName.folded)
    if indexes[key] == nil { indexes[key] = index }
  }

  /// The index of the column with a name, in any case; the first of several.
  package subscript(name: String) -> Int? {
    if indexes.isEmpty { return names.firstIndex { ASCIIName.matches($0, name) } }
    return indexes[name.utf8.map(ASCIIName.folded)]
  }
}
