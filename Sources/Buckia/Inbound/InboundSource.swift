/// What is to be applied, checked or looked into.
package enum InboundSource: Sendable {
  /// A file, or an inbound folder.
  case path(String)
  /// Bytes that came without a file.
  case spooled(SpooledInput)

  /// Files and folders. A folder that nothing has been put into yet may be missing: where a path's parent folder is there and
  /// its name is none of a file to be applied, it counts as an empty folder.
  static func paths(_ paths: [String]) -> [InboundSource] {
    paths.filter { !isUnusedFolder($0) }.map { .path($0) }
  }

  private static func isUnusedFolder(_ path: String) -> Bool {
    let parent = FileSystem.folder(of: path)
    let name = FileSystem.name(of: path)
    guard case .nothing = FileSystem.kind(of: path), case .folder = FileSystem.kind(of: parent), !name.contains(".")
    else { return false }
    let names = (try? FileSystem.names(in: parent)) ?? []
    return !names.contains { RemovalName.plainName(of: $0) == name }
  }
}
