extension StorageContents {
  /// Looks whether an object has these bytes, or only the first of them: what a broken upload leaves on servers that write it straight into its place.
  ///
  /// - Returns: The object; nil where it has others.
  /// - Throws: `StorageError` when either cannot be read.
  package func objectWithBeginning(at path: RemotePath, in storage: any StorageProvider) async throws -> StoredObject? {
    let download = try await storage.get(path, GetRequest())
    guard download.object.byteCount <= byteCount else { return nil }
    var own = chunks().makeAsyncIterator()
    var rest: ArraySlice<UInt8> = []
    for try await chunk in download.chunks {
      var chunk = chunk[...]
      while !chunk.isEmpty {
        if rest.isEmpty { rest = (try await own.next() ?? [])[...] }
        let count = min(rest.count, chunk.count)
        guard count > 0, rest.prefix(count) == chunk.prefix(count) else { return nil }
        rest = rest.dropFirst(count)
        chunk = chunk.dropFirst(count)
      }
    }
    return download.object
  }
}
