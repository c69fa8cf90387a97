// All files of the command line use FoundationEssentials, where there is one.
#if canImport(FoundationEssentials)
  @_exported import FoundationEssentials
#else
  @_exported import Foundation
#endif
