#if os(Linux)
  import Foundation
  import Testing

  @Suite("What the command is linked with")
  struct LinkedLibrariesTests {
    /// Foundation's data for all languages and calendars would be most of a binary that brings its libraries with it.
    @Test("FoundationEssentials is enough")
    func essentials() throws {
      let binary = try Data(contentsOf: Workbench.binary)
      #expect(binary.range(of: Data("libFoundationEssentials.so".utf8)) != nil)
      for name in ["libFoundation.so", "libFoundationInternationalization.so", "lib_FoundationICU.so"] {
        #expect(binary.range(of: Data("\(name)\0".utf8)) == nil, "\(name)")
      }
    }
  }
#endif
