#if os(Linux)
  import Foundation
  import TestSupport
  import Testing

  @Suite("What an app is linked with that imports Buckia alone")
  struct LinkedLibrariesTests {
    /// Foundation's data for all languages and calendars would be most of a binary that brings its libraries with it, and who only works on
    /// databases and files has no use for a network. The command has both: it syncs.
    @Test("Neither Foundation nor networking")
    func essentials() throws {
      let binary = try Data(contentsOf: URL(fileURLWithPath: BuiltProduct.path(of: "FacadeLinkageProbe")))
      #expect(binary.range(of: Data("libFoundationEssentials.so".utf8)) != nil)
      for name in [
        "libFoundation.so", "libFoundationInternationalization.so", "lib_FoundationICU.so", "libFoundationXML.so",
      ] {
        #expect(binary.range(of: Data("\(name)\0".utf8)) == nil, "\(name)")
      }
      // Names of modules are part of the names of their symbols.
      for name in ["NIOPosix", "AsyncHTTPClient", "BuckiaSync", "BuckiaCommand"] {
        #expect(binary.range(of: Data(name.utf8)) == nil, "\(name)")
      }
    }
  }
#endif
