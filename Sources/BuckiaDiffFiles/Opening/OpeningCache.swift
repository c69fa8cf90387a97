import SQLiteSchemas

/// What is kept from one diff file to the next while many are opened: the memory for unpacking, and table definitions by the
/// digest of the bytes they were read from, since the files of one sender mostly carry the same.
///
/// Belongs to one thread, and to one file at a time.
package final class OpeningCache {
  /// How many documents are kept, and how many bytes one may have to be kept.
  private static let limit = 16
  private static let byteLimit = 1 << 20

  let workspace = ZstdWorkspace()
  private var known: [ContentDigest: [TableDefinition]] = [:]

  /// Makes an empty cache.
  package init() {}

  /// The definitions that a `schema.json` holds.
  ///
  /// - Parameters:
  ///   - bytes: The document.
  ///   - digest: The SHA-256 of these very bytes.
  /// - Throws: `DiffFileError` when the document is not as it must be; that is not remembered.
  func definitions(of bytes: [UInt8], digest: ContentDigest) throws(DiffFileError) -> [TableDefinition] {
    if let definitions = known[digest] { return definitions }
    let definitions = try SchemaDocument.parse(bytes)
    guard bytes.count <= Self.byteLimit else { return definitions }
    if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
    known[digest] = definitions
    return definitions
  }
}
