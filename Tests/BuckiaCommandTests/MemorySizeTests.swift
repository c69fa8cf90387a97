import Testing

@testable import BuckiaCommand

@Suite("Amounts of memory")
struct MemorySizeTests {
  @Test(
    "A number counts MiB, or the unit that follows it",
    arguments: [
      ("256", 256 << 20), ("64M", 64 << 20), ("64MiB", 64 << 20), ("2g", 2 << 30), ("4096k", 4 << 20),
      ("1GiB", 1 << 30),
    ])
  func amounts(text: String, bytes: Int) {
    #expect(MemorySize(argument: text)?.bytes == bytes)
  }

  @Test(
    "A text that is no amount is refused",
    arguments: ["", "M", "0", "-1", "1.5G", "64 M", "64MB", "512k", "9999999999999999999", "99999999999G", "٤"])
  func refused(text: String) {
    #expect(MemorySize(argument: text) == nil)
  }
}
