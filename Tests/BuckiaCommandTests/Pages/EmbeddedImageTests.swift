@testable import BuckiaCommand
import Testing

@Suite("Images in values")
struct EmbeddedImageTests {
  private static func big(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  private static func png(_ width: Int, _ height: Int) -> [UInt8] {
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8) + big(width, 4) + big(height, 4)
      + [8, 6, 0, 0, 0]
  }

  private static func jpeg(_ width: Int, _ height: Int) -> [UInt8] {
    [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xFF, 0xC4, 0, 3, 0, 0xFF, 0xC2, 0, 11, 8] + big(height, 2)
      + big(width, 2) + [3, 0, 0, 0]
  }

  private static func webp(_ chunk: String, _ payload: [UInt8]) -> [UInt8] {
    Array("RIFF".utf8) + [0, 0, 0, 0] + Array("WEBP\(chunk)".utf8) + [0, 0, 0, 0] + payload
  }

  private static let samples: [(EmbeddedImage.Format, [UInt8])] = [
    (.png, png(640, 480)), (.jpeg, jpeg(640, 480)), (.gif, Array("GIF87a".utf8) + [0x80, 2, 0xE0, 1, 0]),
    (.webp, webp("VP8 ", [0, 0, 0, 0x9D, 0x01, 0x2A, 0x80, 2, 0xE0, 1])),
    (.webp, webp("VP8L", [0x2F, 0x7F, 0xC2, 0x77, 0x00])),
    (.webp, webp("VP8X", [0, 0, 0, 0, 0x7F, 2, 0, 0xDF, 1, 0])),
  ]

  @Test("PNG, JPEG, GIF and the kinds of WebP are recognised by their bytes, with their sizes")
  func formats() {
    for (format, bytes) in Self.samples {
      let image = EmbeddedImage(bytes)
      #expect(image?.format == format)
      #expect(image?.width == 640 && image?.height == 480, "\(format) \(String(describing: image))")
      #expect(image?.bytes == bytes)
    }
  }

  @Test("Bytes that end before the image's size are no image")
  func cut() {
    for (format, bytes) in Self.samples {
      let shortest = bytes.indices.first { EmbeddedImage(Array(bytes.prefix($0))) != nil } ?? bytes.count
      #expect(shortest > 8, "\(format)")
      for count in 0..<shortest { #expect(EmbeddedImage(Array(bytes.prefix(count))) == nil) }
    }
    // A JPEG whose segments never end.
    #expect(EmbeddedImage([0xFF, 0xD8] + Array(repeating: 0xFF, count: 10_000)) == nil)
    #expect(EmbeddedImage([0xFF, 0xD8, 0xFF, 0xE0, 0, 0, 0xFF, 0xC0, 0, 11, 8, 0, 1, 0, 1]) == nil)
  }

  @Test(
    "Documents are no images, whatever they claim to be",
    arguments: [
      "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>", "<?xml version=\"1.0\"?><svg/>",
      "<html></html>", "%PDF-1.7", "data:image/png;base64,AAAA", "",
    ])
  func documents(text: String) {
    #expect(EmbeddedImage(Array(text.utf8)) == nil)
  }

  @Test("An image of more pixels than a browser can hold is refused, however few its bytes are")
  func bombs() {
    #expect(EmbeddedImage(Self.png(5_000, 5_000)) != nil)
    #expect(EmbeddedImage(Self.png(10_000, 5_000)) == nil)
    #expect(EmbeddedImage(Self.png(0xFFFF_FFFF, 0xFFFF_FFFF)) == nil)
    #expect(EmbeddedImage(Self.png(0, 5)) == nil)
    #expect(EmbeddedImage(Self.jpeg(65_535, 65_535)) == nil)
  }
}
