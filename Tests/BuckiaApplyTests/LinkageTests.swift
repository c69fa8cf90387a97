import Foundation
import TestSupport
import Testing

@Suite("What the engine links")
struct LinkageTests {
  /// The probe stands where the test bundle stands, except on Apple systems, where the bundle is one folder deeper.
  private var probe: URL {
    get throws {
      let here = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
      let bundles = Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent() } + [here]
      let candidates = bundles.map { $0.appendingPathComponent("EngineLinkageProbe") }
      return try #require(
        candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) },
        "EngineLinkageProbe is in none of \(bundles.map(\.path))")
    }
  }

  @Test("A program that uses the engine loads SQLite and no Foundation")
  func loadsNoFoundation() throws {
    let folder = try TemporaryFolder()
    let process = Process()
    process.executableURL = try probe
    process.arguments = [folder.path]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(output.hasPrefix("applied: 2 rows, 1 ledger entry\n"))
    let libraries = output.split(separator: "\n").filter { $0.hasPrefix("library: ") }.map { $0.dropFirst(9) }
    // Without this the test would pass for a probe that prints nothing.
    #expect(libraries.contains { $0.contains("libsqlite3") }, "\(output)")
    let foundation = libraries.filter { $0.contains("Foundation") || $0.contains("libicu") }
    // Apple's own SQLite lets the system load CoreFoundation; only what a Swift `import Foundation` brings is ours.
    #if canImport(Darwin)
      #expect(!foundation.contains { $0.hasSuffix("/libswiftFoundation.dylib") }, "\(foundation)")
    #else
      #expect(foundation.isEmpty, "\(foundation)")
    #endif
  }
}
