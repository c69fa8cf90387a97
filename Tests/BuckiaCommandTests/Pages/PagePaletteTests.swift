@testable import BuckiaCommand
import Foundation
import Testing

@Suite("Colours of a page")
struct PagePaletteTests {
  /// The relative luminance, as [WCAG](https://www.w3.org/TR/WCAG22/#dfn-relative-luminance) computes it.
  private func luminance(_ color: UInt32) -> Double {
    func channel(_ shift: UInt32) -> Double {
      let value = Double(color >> shift & 0xFF) / 255
      return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }
    return 0.2126 * channel(16) + 0.7152 * channel(8) + 0.0722 * channel(0)
  }

  private func contrast(_ one: UInt32, _ other: UInt32) -> Double {
    let (dark, light) = (min(luminance(one), luminance(other)), max(luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
  }

  @Test("Text is legible on every background, light and dark", arguments: [PagePalette.light, .dark])
  func texts(palette: PagePalette) {
    for background in palette.backgrounds {
      // Only values are marked, and they have the text colour.
      for text in palette.texts where background.name != "mark" || text.name == "text" {
        let found = contrast(text.color, background.color)
        #expect(found >= 4.5, "\(text.name) on \(background.name): \(found)")
      }
      for line in palette.lines where background.name != "mark" {
        let found = contrast(line.color, background.color)
        #expect(found >= 3, "\(line.name) on \(background.name): \(found)")
      }
    }
  }

  @Test("Light and dark have the same colour names, and no others are used")
  func names() {
    func names(_ palette: PagePalette) -> [String] {
      (palette.texts + palette.backgrounds + palette.lines).map(\.name)
    }
    #expect(names(.light) == names(.dark))
    let used = Set(PageStyle.text.matches(of: /var\(--([a-z]+)\)/).map { String($0.output.1) })
    #expect(used == Set(names(.light)))
    #expect(PageStyle.text.matches(of: /#[0-9a-f]{3,6}\b/).count == 3 * names(.light).count)
  }
}
