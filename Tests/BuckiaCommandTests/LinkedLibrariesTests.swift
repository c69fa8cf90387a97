#if os(Linux)
  import Foundation
  import TestSupport
  import Testing

  @Suite("Libraries linked into an app that imports Buckia alone")
  struct LinkedLibrariesTests {
    /// Foundation's data for all languages and calendars would be most of a statically linked binary, and code that
    /// only works on databases and files needs no network. The command links both: it syncs.
    @Test("Neither Foundation nor networking")
    func essentials() throws {
      let binary = try Data(contentsOf: URL(fileURLWithPath: BuiltProduct.path(of: "FacadeLinkageProbe")))
      #expect(binary.range(of: Data("libFoundationEssentials.so".utf8)) != nil)
      for name in [
        "libFoundation.so", "libFoundationInternationalization.so", "lib_FoundationICU.so", "libFoundationXML.so",
      ] {
        #expect(binary.range(of: Data("\(name)\0".utf8)) == nil, "\(name)")
      }
      // Symbol names contain the names of their modules.
      for name in ["NIOPosix", "AsyncHTTPClient", "BuckiaSync", "BuckiaCommand"] {
        #expect(binary.range(of: Data(name.utf8)) == nil, "\(name)")
      }
    }
  }
#endif
