import BuckiaBytes

/// Where a page goes.
package enum PageTarget {
  /// Into a file, which appears complete or not at all.
  ///
  /// - Parameter isPrivate: True if only its owner may read it.
  case file(String, isReplacing: Bool, isPrivate: Bool = false)
  /// To a closure that gets the bytes piece by piece.
  case stream((UnsafeRawBufferPointer) throws -> Void)

  /// Writes a page.
  ///
  /// - Parameter body: Writes everything. Where it throws there is no file; what a stream has got cannot be taken back.
  /// - Returns: How many bytes there are.
  /// - Throws: What `body` throws; `ByteStreamError`, with the code `alreadyExists` where a file has the name and may not be replaced;
  ///   what the closure of a stream throws.
  package func write(_ body: (PageWriter) throws -> Void) throws -> Int64 {
    switch self {
    case .file(let path, let isReplacing, let isPrivate):
      let file = try AtomicFileOutput(at: path, replacing: isReplacing, followingLinks: true, isPrivate: isPrivate)
      let page = PageWriter { try file.write($0) }
      try body(page)
      try page.flush()
      try file.publish()
      return page.byteCount
    case .stream(let closure):
      let page = PageWriter(closure)
      try body(page)
      try page.flush()
      return page.byteCount
    }
  }
}
