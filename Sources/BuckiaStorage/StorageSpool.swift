import BuckiaBytes

/// An object on its way from one place in a storage to another: a file of this process's own, which is gone with it.
final class StorageSpool {
  private let temporary: TemporaryFile
  private(set) var byteCount: Int64 = 0

  init() throws(StorageError) {
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    do { temporary = try TemporaryFile(in: folder, shownAs: folder, isPrivate: true) } catch {
      throw StorageError(error)
    }
  }

  func write(_ chunk: [UInt8]) throws(StorageError) {
    do { try temporary.file.write(chunk) } catch { throw StorageError(error) }
    byteCount += Int64(chunk.count)
  }

  func contents() throws(StorageError) -> StorageContents { try StorageContents(file: temporary.path) }
}
