/// How much is drawn on a page, so that a browser can show it.
package struct PageLimits: Sendable {
  /// How many changes of a table, or conflicts in all.
  package var entries: Int
  /// After how many bytes of the page no further ones are drawn.
  package var pageBytes: Int64
  /// How many characters of a text.
  package var characters: Int
  /// How many tables the contents list.
  package var tables: Int
  /// How large an image may be that is put into the page.
  package var imageBytes: Int
  /// How large all images on the page may be together.
  package var allImageBytes: Int

  /// What a page shows when nothing is said.
  package static let standard = PageLimits(
    entries: 500, pageBytes: 32 << 20, characters: 400, tables: 1_000, imageBytes: 1 << 20, allImageBytes: 16 << 20)

  /// Everything, and images that are not too large for a browser.
  package static let full = PageLimits(
    entries: .max, pageBytes: .max, characters: .max, tables: .max, imageBytes: 8 << 20, allImageBytes: .max)
}
