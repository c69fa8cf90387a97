extension StorageContents {
  /// Whether an object has the same bytes.
  ///
  /// - Throws: `StorageError` when either cannot be read.
  package func isEqual(to path: RemotePath, in storage: any StorageProvider) async throws -> Bool {
    let download = try await storage.get(path, GetRequest())
    guard download.object.byteCount == byteCount else { return false }
    var own = chunks().makeAsyncIterator()
    var rest: ArraySlice<UInt8> = []
    for try await chunk in download.chunks {
      var chunk = chunk[...]
      while !chunk.isEmpty {
        if rest.isEmpty { rest = (try await own.next() ?? [])[...] }
        let count = min(rest.count, chunk.count)
        guard count > 0, rest.prefix(count) == chunk.prefix(count) else { return false }
        rest = rest.dropFirst(count)
        chunk = chunk.dropFirst(count)
      }
    }
    return true
  }
}
