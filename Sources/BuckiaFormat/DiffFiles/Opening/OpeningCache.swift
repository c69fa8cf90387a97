import SQLiteSchemas

/// What can be reused when many diff files are opened: the memory for decompression, and table definitions by the digest of
/// their `schema.json`, since most files of one sender carry the same.
///
/// Use it in one thread, for one file at a time.
package final class OpeningCache {
  /// How many documents are kept, and how many bytes one may have to be kept.
  private static let limit = 16
  private static let byteLimit = 1 << 20

  let workspace = ZstdWorkspace()
  private var known: [ContentDigest: SchemaDocument.Content] = [:]

  /// Makes an empty cache.
  package init() {}

  /// What a `schema.json` holds.
  ///
  /// - Parameters:
  ///   - bytes: The document.
  ///   - digest: The SHA-256 of these very bytes.
  /// - Throws: `DiffFileError` when the document is not as it must be; that is not remembered.
  func schema(of bytes: [UInt8], digest: ContentDigest) throws(DiffFileError) -> SchemaDocument.Content {
    if let content = known[digest] { return content }
    let content = try SchemaDocument.content(of: bytes)
    guard bytes.count <= Self.byteLimit else { return content }
    if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
    known[digest] = content
    return content
  }
}
