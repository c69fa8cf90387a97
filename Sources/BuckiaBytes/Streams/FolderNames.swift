/// What a folder contains, by name.
package enum FolderNames {
  /// The names in a folder, hidden ones too, in no order.
  ///
  /// - Throws: `ByteStreamError` when the folder cannot be opened, or cannot be read to its end: then no name is returned.
  package static func all(in folder: String) throws(ByteStreamError) -> [String] {
    guard let listing = opendir(folder) else {
      throw ByteStreamError("the folder cannot be read", errno: errno, path: folder, otherwise: .unreadable)
    }
    defer { closedir(listing) }
    var names: [String] = []
    while true {
      // The end and an error look alike but for this. Names that are passed over would be files that are.
      errno = 0
      guard let entry = readdir(listing) else {
        let number = errno
        guard number == 0 else {
          throw ByteStreamError(
            "the folder cannot be read to its end", errno: number, path: folder, otherwise: .unreadable)
        }
        return names
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        // Sound: d_name ends with a NUL inside the entry, which lives until the next readdir.
        pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
          String(cString: $0)
        }
      }
      if name != ".", name != ".." { names.append(name) }
    }
  }
}
