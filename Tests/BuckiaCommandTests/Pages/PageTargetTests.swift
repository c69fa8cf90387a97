@testable import BuckiaCommand
import TestSupport
import Testing

@Suite("Destinations of a page")
struct PageTargetTests {
  private struct Failure: Error {}

  @Test("A file appears complete or not at all, and replaces another one only on request")
  func file() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("page.html")
    #expect(throws: Failure.self) {
      try PageTarget.file(path, isReplacing: false).write { page in
        for _ in 0..<10_000 { try page.write("<p>something</p>") }
        throw Failure()
      }
    }
    #expect(try folder.names(in: ".").isEmpty)
    let byteCount = try PageTarget.file(path, isReplacing: false).write { try $0.write("<p>é</p>") }
    #expect(byteCount == 9)
    #expect(try fileBytes(path) == Array("<p>é</p>".utf8))
    #expect(throws: (any Error).self) { try PageTarget.file(path, isReplacing: false).write { try $0.write("new") } }
    #expect(try fileBytes(path) == Array("<p>é</p>".utf8))
    _ = try PageTarget.file(path, isReplacing: true).write { try $0.write("new") }
    #expect(try fileBytes(path) == Array("new".utf8))
    #expect(try folder.names(in: ".") == ["page.html"])
  }

  @Test("A page is passed on while it is written")
  func pieces() throws {
    var longest = 0
    var total = 0
    var seen: [Int] = []
    let byteCount = try PageTarget.stream {
      longest = max(longest, $0.count)
      total += $0.count
    }.write { page in
      for number in 1...100_000 {
        try page.write("<p>\(number)</p>")
        if number % 20_000 == 0 { seen.append(total) }
      }
    }
    #expect(longest < 70_000)
    #expect(byteCount == Int64(total))
    #expect(seen == seen.sorted() && Set(seen).count == seen.count && seen[0] > 0)
  }

  @Test("An error thrown by a stream's closure is rethrown")
  func streamFailure() {
    #expect(throws: Failure.self) {
      try PageTarget.stream { _ in throw Failure() }.write { try $0.write("<p></p>") }
    }
  }
}
