import Foundation

/// What the build has put beside the tests: programs and libraries.
public enum BuiltProduct {
  /// It was not built.
  public struct Missing: Error, CustomStringConvertible {
    /// Which, and where it was looked for.
    public let description: String
  }

  /// The path of a product, which stands where the test bundle stands; on Apple systems, the bundle is a folder of its own there.
  ///
  /// - Parameter name: The name of the file.
  /// - Throws: `Missing`.
  public static func path(of name: String) throws -> String {
    let here = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    let folders = (Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent() } + [here]).map(\.path)
    for folder in folders {
      var isFolder: ObjCBool = false
      let path = "\(folder)/\(name)"
      if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue { return path }
    }
    throw Missing(description: "\(name) is in none of \(folders)")
  }
}
