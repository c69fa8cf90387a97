/// One line of a plan: what becomes of an incoming table or column here, and why. A table or column that is the same on both
/// sides has none.
public struct SchemaNote: Equatable, Sendable, CustomStringConvertible {
  /// What is done.
  public enum Action: String, Sendable, CaseIterable {
    /// A table is created.
    case create
    /// A column is added.
    case add
    /// Values are written by name into columns that stand in another order here.
    case remap
    /// Values go into a column that has another name here.
    case rename
    /// A column or a property is only here, and stays.
    case keep
    /// Values go into a column of another type.
    case convert
    /// It is kept for the application's own upgrade.
    case hold
    /// A table, index, view or trigger is dropped, as its author has dropped it. Only where the schema is adopted.
    case drop
    /// A table is made anew by its author's definition, with the rows it has. Only where the schema is adopted.
    case rebuild
    /// An index, view or trigger is made anew by its author's definition. Only where the schema is adopted.
    case replace
    /// A part of a definition is not carried out.
    case leaveOut = "leave-out"
  }

  /// What is done.
  public let action: Action
  /// The table, as the diff calls it.
  public let table: String
  /// The column; nil where it is about the whole table.
  public let column: String?
  /// What about it and why, for people.
  public let detail: String

  init(_ action: Action, _ table: String, _ column: String? = nil, _ detail: String) {
    self.action = action
    self.table = table
    self.column = column
    self.detail = detail
  }

  /// A line for people.
  public var description: String {
    let subject = column.map { "\(table).\($0)" } ?? table
    let verb = action == .leaveOut ? "leave out" : action.rawValue
    return "\(verb) \(subject)\(detail.isEmpty ? "" : ": \(detail)")"
  }
}
