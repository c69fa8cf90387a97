import Foundation
import TestSupport
import Testing

@Suite("Libraries that the engine links")
struct LinkageTests {
  @Test("A program that uses the engine loads SQLite and no Foundation")
  func loadsNoFoundation() throws {
    let folder = try TemporaryFolder()
    let run = try ProgramRun(BuiltProduct.path(of: "EngineLinkageProbe"), [folder.path])
    #expect(run.hasSucceeded)
    let output = run.output
    #expect(output.hasPrefix("applied: 2 rows, 1 ledger entry\n"))
    let libraries = output.split(separator: "\n").filter { $0.hasPrefix("library: ") }.map { $0.dropFirst(9) }
    // Without this the test would pass for a probe that prints nothing.
    #expect(libraries.contains { $0.contains("libsqlite3") }, "\(output)")
    let foundation = libraries.filter { $0.contains("Foundation") || $0.contains("libicu") }
    // Apple's own SQLite lets the system load CoreFoundation; only the library of a Swift `import Foundation` would be
    // ours.
    #if canImport(Darwin)
      #expect(!foundation.contains { $0.hasSuffix("/libswiftFoundation.dylib") }, "\(foundation)")
    #else
      #expect(foundation.isEmpty, "\(foundation)")
    #endif
  }
}
