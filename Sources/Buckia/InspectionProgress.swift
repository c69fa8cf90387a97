import BuckiaFormat

/// How far a file has been checked.
package struct InspectionProgress {
  /// Where the file is.
  package let path: String
  /// How many of its bytes have been read.
  package let bytes: Int
  /// How many it has.
  package let byteCount: Int

  package init(path: String, bytes: Int, byteCount: Int) {
    self.path = path
    self.bytes = bytes
    self.byteCount = byteCount
  }
}

extension InboundItem {
  /// Opens the file, and tells how far it is read from then on.
  ///
  /// - Throws: `DiffFileError` when it cannot be opened, or its first bytes cannot be read.
  func open(
    telling progress: ((InspectionProgress) -> Void)?
  ) throws(DiffFileError) -> (file: OpenedFile, kind: InboundKind) {
    let (file, kind) = try open()
    guard let progress else { return (file, kind) }
    let (path, byteCount) = (path, Int(clamping: file.byteCount))
    let observed = file.observed { progress(InspectionProgress(path: path, bytes: $0, byteCount: byteCount)) }
    return (observed, kind)
  }
}
