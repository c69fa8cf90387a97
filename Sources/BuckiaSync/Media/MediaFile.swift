import BuckiaBytes
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A file of a folder of media, and the object that it is to be.
struct MediaFile: Sendable {
  let file: String
  let path: RemotePath
  /// In which state it is, as the file system tells.
  let state: String
  let byteCount: Int64

  /// All files of a folder that take part, by name.
  ///
  /// - Parameters:
  ///   - folder: The folder here. One that does not exist is empty.
  ///   - target: Its folder in the storage.
  ///   - filter: Which files take part.
  /// - Returns: The files, and the paths in the folder of what is left out though the filter takes it: links, hidden and unfinished files, and
  ///   those whose names no storage takes.
  /// - Throws: `StorageError` when the folder cannot be read.
  static func all(
    in folder: String, to target: RemotePath, _ filter: PathFilter
  ) async throws -> (files: [MediaFile], leftOut: [String]) {
    let (page, names) = try await LocalFolder(folder).all(in: nil)
    return try await BlockingWork.run {
      var files: [MediaFile] = []
      var leftOut = names.filter { filter.takes($0) }
      for object in page.objects where filter.takes(object.path.text) {
        let file = "\(folder)/\(object.path)"
        do {
          let path = try target.appending(object.path.text)
          // What has gone meanwhile is not there.
          guard let identity = try FileIdentity.current(at: file) else { continue }
          files.append(MediaFile(file: file, path: path, state: identity.text, byteCount: object.byteCount))
        } catch let error as ByteStreamError {
          throw StorageError(error)
        } catch let error as StorageError where error.code == .invalidName {
          leftOut.append(object.path.text)
        }
      }
      return (files, leftOut)
    }
  }
}
