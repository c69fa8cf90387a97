import BuckiaLedger

/// Which recorded conflicts are wanted. Without any condition it is all of them.
///
/// ```swift
/// var filter = ConflictFilter()
/// filter.table = "notes"
/// filter.kind = .data
/// try database.forEachConflict(matching: filter, newest: 20) { print($0.id) }
/// ```
public struct ConflictFilter: Equatable, Sendable {
  /// Those of this table, whatever the case of its name.
  public var table: String?
  /// Those of this diff file: its id, or the content digest of a raw changeset.
  public var diff: String?
  /// Those of this kind.
  public var kind: ConflictKind?
  /// Only those that nobody has decided about in particular (``ConflictRecord/isOpen``).
  public var isOpen = false
  /// Those with these numbers (``ConflictRecord/id``).
  package var numbers = Int64.min...Int64.max

  /// Makes a filter that lets everything through.
  public init() {}

  var selection: ConflictSelection {
    var selection = ConflictSelection()
    selection.table = table
    selection.diff = diff
    selection.kind = kind
    selection.isOpen = isOpen
    selection.numbers = numbers
    return selection
  }
}
