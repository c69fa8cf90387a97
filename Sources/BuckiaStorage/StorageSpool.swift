import BuckiaByteStreams

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// An object on its way from one place in a storage to another: a file of this process's own, which is gone with it.
final class StorageSpool {
  private let path: String
  private let file: PosixFile
  private(set) var byteCount: Int64 = 0

  init() throws(StorageError) {
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    path = "\(folder)/buckia-\(String(UInt64.random(in: 0...UInt64.max), radix: 36)).tmp"
    do { file = try PosixFile(creating: path, isPrivate: true) } catch { throw StorageError(error) }
  }

  deinit { unlink(path) }

  func write(_ chunk: [UInt8]) throws(StorageError) {
    do { try file.write(chunk) } catch { throw StorageError(error) }
    byteCount += Int64(chunk.count)
  }

  func contents() throws(StorageError) -> StorageContents { try StorageContents(file: path) }
}
