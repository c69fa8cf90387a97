/// A value as a page shows it.
package struct PageValue: Sendable {
  /// What kind of value it is, which decides how it looks.
  package enum Kind: String, Sendable {
    case null, number, text, blob
    /// There is no value: the row is not there, or nothing is said of the column.
    case absent
  }

  /// The kind.
  package let kind: Kind
  /// The value for people. Of a text its lines are shown as lines.
  package let text: String
  /// What is not shown of it: its whole size.
  package var note: String?
  /// The image that its bytes are.
  package var image: PageImage?

  /// - Parameters:
  ///   - kind: The kind.
  ///   - text: The value for people.
  package init(_ kind: Kind, _ text: String) {
    self.kind = kind
    self.text = text
  }
}

/// An image on a page, or why it is not shown.
package struct PageImage: Sendable {
  /// What it is, for those who cannot see it.
  package let description: String
  /// The image; nil where it would make the page too large.
  package let shown: EmbeddedImage?

  /// - Parameters:
  ///   - description: What it is.
  ///   - shown: The image; nil where it would make the page too large.
  package init(_ description: String, _ shown: EmbeddedImage?) {
    self.description = description
    self.shown = shown
  }
}
