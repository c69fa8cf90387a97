/// A change or a conflict on a page: what it is about, and its row column by column, with the versions side by side.
package struct PageEntry: Sendable {
  /// What has happened, which decides about colours.
  package enum State: String, Sendable {
    case inserted, updated, deleted
    /// A conflict that waits for somebody to decide about it, and one that does not.
    case open, resolved
  }

  /// A column, and its value in each version.
  package struct Row: Sendable {
    /// The name.
    package let column: String
    /// The values, in the order of the versions.
    package let values: [PageValue]

    /// - Parameters:
    ///   - column: The name.
    ///   - values: The values, in the order of the versions.
    package init(_ column: String, _ values: [PageValue]) {
      self.column = column
      self.values = values
    }
  }

  /// Its number on the page, by which links find it.
  package let number: Int64
  /// What has happened.
  package let state: State
  /// What has happened, in words.
  package let label: String
  /// The row's key.
  package let key: String
  /// What else there is to say, a sentence each.
  package let notes: [String]
  /// The columns.
  package let rows: [Row]
  /// What can be done about it; nil for nothing.
  package var actions: Markup?

  /// - Parameters:
  ///   - number: Its number on the page.
  ///   - state: What has happened.
  ///   - label: What has happened, in words.
  ///   - key: The row's key.
  ///   - notes: What else there is to say.
  ///   - rows: The columns.
  package init(number: Int64, _ state: State, label: String, key: String, notes: [String] = [], rows: [Row]) {
    self.number = number
    self.state = state
    self.label = label
    self.key = key
    self.notes = notes
    self.rows = rows
  }
}
