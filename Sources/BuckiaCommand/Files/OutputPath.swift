import Buckia
import Foundation

/// Where `-o` points: at a folder, which gets a file named by its id, or at the file itself.
enum OutputPath: Equatable {
  /// A folder that exists.
  case folder(String)
  /// Any other path.
  case file(String)

  /// Reads the option; without it, the current folder.
  ///
  /// A path that ends in a slash is meant as a folder even when there is none: making a file there is refused by the
  /// system, with its reason, instead of writing to an unexpected place.
  init(_ option: String?) {
    guard let option else {
      self = .folder(".")
      return
    }
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: option, isDirectory: &isFolder)
    guard (exists && isFolder.boolValue) || option.hasSuffix("/") else {
      self = .file(option)
      return
    }
    var folder = option[...]
    while folder.count > 1, folder.last == "/" { folder.removeLast() }
    self = .folder(String(folder))
  }

  /// The same for the façade.
  func diffOutput(replacing: Bool) -> DiffOutput {
    switch self {
    case .folder(let path): .folder(path)
    case .file(let path): .file(path, replacing: replacing)
    }
  }
}
