import BuckiaBytes

/// The shared libraries this process has loaded.
enum LoadedLibraries {
  /// The list cannot be had.
  struct Failure: Error {
    let errno: Int32
  }

  #if canImport(Darwin)
    static func paths() throws -> [String] {
      (0..<_dyld_image_count()).compactMap { index in
        _dyld_get_image_name(index).map { String(cString: $0) }
      }
    }
  #else
    static func paths() throws -> [String] {
      guard let file = fopen("/proc/self/maps", "r") else { throw Failure(errno: errno) }
      defer { fclose(file) }
      var line = [CChar](repeating: 0, count: 8192)
      var paths: Set<String> = []
      while fgets(&line, Int32(line.count), file) != nil {
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Address, rights, offset, device and inode go before the path, none of them with a slash.
        if let start = text.firstIndex(of: "/"), text.contains(".so") {
          paths.insert(text[start...].filter { !$0.isNewline })
        }
      }
      return paths.sorted()
    }
  #endif
}
