import BuckiaBytes

/// This program as a file.
enum OwnProgram {
  /// Its path without links; nil where the system does not tell.
  static var path: String? {
    #if canImport(Darwin)
      var size: UInt32 = 0
      _NSGetExecutablePath(nil, &size)
      var buffer = [CChar](repeating: 0, count: Int(size) + 1)
      guard _NSGetExecutablePath(&buffer, &size) == 0 else { return nil }
      return resolved(buffer)
    #else
      return resolved(Array("/proc/self/exe".utf8CString))
    #endif
  }

  /// Whether another path leads to this program.
  static func isFound(at other: String) -> Bool { path != nil && resolved(Array(other.utf8CString)) == path }

  private static func resolved(_ path: [CChar]) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }
}
