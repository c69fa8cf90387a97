import BuckiaStorage

/// Where the parts of a backup are.
struct BackupPlace: Sendable {
  /// The person's folder in the storage.
  let folder: RemotePath
  /// The name of the whole copy.
  let name: String

  /// The whole copy.
  var whole: RemotePath { get throws(StorageError) { try folder.appending(name) } }
  /// The folder for what has changed since.
  var history: RemotePath { get throws(StorageError) { try folder.appending("history/\(name)") } }

  /// The name of the copy of a device that has found another one's under the usual name: `backup-7f3a….sqlite`.
  static func name(_ usual: String, of replica: String) -> String {
    guard let dot = usual.lastIndex(of: ".") else { return "\(usual)-\(replica)" }
    return "\(usual[..<dot])-\(replica)\(usual[dot...])"
  }
}
