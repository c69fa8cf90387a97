import Foundation

/// Programs and libraries that the build has put beside the tests.
public enum BuiltProduct {
  /// The error for a product that was not built.
  public struct Missing: Error, CustomStringConvertible {
    /// The name of the product, and the searched folder.
    public let description: String
  }

  /// The path of a product, which is beside the test bundle; on Apple systems, the bundle is a separate folder there.
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
