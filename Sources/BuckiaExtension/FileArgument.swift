import Buckia
import BuckiaBytes
import SQLiteConnections

extension SQLiteArguments {
  /// A file or folder that is named, or the bytes of a file; nil for NULL.
  ///
  /// - Throws: `SQLiteFunctionFailure` for a number, and for a path that contains a NUL.
  func source(at index: Int, of function: String) throws -> InboundSource? {
    switch storageClass(at: index) {
    case .null: return nil
    case .blob: return try blobSource(at: index)
    case .text: return try path(at: index, of: function).map { .path($0) }
    case .integer, .real: throw SQLiteFunctionFailure("\(function) takes a path, or the bytes of a file as a blob")
    }
  }

  /// The bytes of a file; nil for NULL.
  ///
  /// - Throws: `SQLiteFunctionFailure` for anything else.
  func bytes(at index: Int, of function: String) throws -> InboundSource? {
    switch storageClass(at: index) {
    case .null: return nil
    case .blob: return try blobSource(at: index)
    case .text, .integer, .real:
      throw SQLiteFunctionFailure("\(function) takes the bytes of a file as a blob, such as readfile('…') in the shell")
    }
  }

  /// A path; nil for NULL.
  ///
  /// - Throws: `SQLiteFunctionFailure` for anything else, and for a path that contains a NUL.
  func path(at index: Int, of function: String) throws -> String? {
    guard storageClass(at: index) != .null else { return nil }
    guard storageClass(at: index) == .text, let path = text(at: index), !path.utf8.contains(0) else {
      throw SQLiteFunctionFailure("\(function) takes a path as text")
    }
    return path
  }

  private func blobSource(at index: Int) throws -> InboundSource {
    try .spooled(SpooledInput(PositionedInput(TemporaryBuffer(blob(at: index) ?? [])), named: "blob"))
  }
}
