import BuckiaDiff

/// A raw changeset would have to leave out rows that a diff file has: `DiffOptions.refusesIncomplete`.
package struct IncompleteChangeset: Error, CustomStringConvertible {
  /// The first table with such rows.
  package let item: SkippedItem

  package var description: String { "\(item.name): \(item.reason)" }
}
