import Foundation

/// Real databases: maps with spatial indexes, foreign keys, and triggers that call functions this SQLite does not have.
struct GeoPackageScenario {
  let folder: URL
  let workspace: Workspace

  /// The older and the newer file of each pair.
  private static let pairs = [
    ("base", "modified_1_geom"), ("base", "inserted_1_A"), ("base", "inserted_1_B"), ("base", "updated_A"),
    ("base", "updated_B"), ("base", "added-column"), ("base", "added-table"), ("triggers-base", "triggers-modified"),
    ("fk-base", "fk-modified"),
  ]

  func perform() throws {
    print("\n== GeoPackages: from one version to the next, and every table compared ==\n")
    print("  \(row(["from", "to", "diff file", "diff", "apply", "tables that differ afterwards"]))")
    for (old, new) in Self.pairs {
      let oldFile = folder.appendingPathComponent("\(old).gpkg")
      let newFile = folder.appendingPathComponent("\(new).gpkg")
      guard FileManager.default.fileExists(atPath: oldFile.path), FileManager.default.fileExists(atPath: newFile.path)
      else { continue }
      try perform(from: oldFile, to: newFile, names: (old, new))
    }
  }

  private func perform(from old: URL, to new: URL, names: (old: String, new: String)) throws {
    let copy = "\(names.new).copy.gpkg"
    let diff = "\(names.new).bdiff"
    try workspace.copy(old, to: copy)
    let diffTime = try workspace.runSilently("diff", old.path, new.path, "-o", diff)
    let applyTime = try workspace.runSilently("apply", copy, diff)
    let differences = try TableComparison.differences(between: workspace.path(copy), and: new.path)
    let size = try FileManager.default.attributesOfItem(atPath: workspace.path(diff))[.size] as? Int ?? 0
    let verdict = differences.isEmpty ? "none" : differences.map(\.table).joined(separator: ", ")
    print("  \(row([names.old, names.new, "\(size) bytes", milliseconds(diffTime), milliseconds(applyTime), verdict]))")
    guard differences.isEmpty else { throw DemoError("\(copy) differs from \(new.lastPathComponent)") }
  }

  private func milliseconds(_ seconds: Double) -> String { "\(Int((seconds * 1000).rounded())) ms" }

  private func row(_ cells: [String]) -> String {
    let widths = [13, 17, 12, 7, 7, 0]
    return zip(cells, widths).map { $0.padding(toLength: max($0.count, $1), withPad: " ", startingAt: 0) }
      .joined(separator: "  ")
  }
}
