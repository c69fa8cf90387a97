import Foundation

/// `make demo`: shows the main job with the commands that a user would type.
///
/// Everything happens in a temporary folder that is removed at the end.
@main
enum Demo {
  static func main() {
    do {
      let options = try DemoOptions(CommandLine.arguments.dropFirst())
      let workspace = try Workspace()
      defer { workspace.remove() }
      let began = ContinuousClock.now
      if let folder = options.geoPackages {
        try GeoPackageScenario(folder: folder, workspace: workspace).perform()
      } else {
        print("There are no GeoPackages to work on (make demo GPKG=FOLDER names a folder), so the sample alone it is.")
      }
      try SampleScenario(folder: options.sample, workspace: workspace).perform()
      try AlbumScenario(workspace: workspace).perform()
      let elapsed = (ContinuousClock.now - began) / .milliseconds(1)
      print("\nThe demo took \(String(format: "%.1f", elapsed / 1000)) seconds and left nothing behind.")
    } catch {
      FileHandle.standardError.write(Data("The demo failed: \(error)\n".utf8))
      exit(1)
    }
  }
}

/// The demo's input.
struct DemoOptions {
  /// The folder with the sample's SQL.
  let sample: URL
  /// The folder with GeoPackages; nil when there is none.
  let geoPackages: URL?

  init(_ arguments: ArraySlice<String>) throws {
    var values: [String: String] = [:]
    var rest = arguments
    while let name = rest.popFirst(), let value = rest.popFirst() { values[name] = value }
    guard let sample = values["--sample"] else {
      throw DemoError("usage: BuckiaDemo --sample FOLDER [--geopackages FOLDER]")
    }
    self.sample = URL(fileURLWithPath: sample)
    geoPackages = values["--geopackages"].map { URL(fileURLWithPath: $0) }.flatMap { folder in
      FileManager.default.fileExists(atPath: folder.appendingPathComponent("base.gpkg").path) ? folder : nil
    }
  }
}
