// swift-tools-version: 6.2
import PackageDescription

// Benchmarks are a package of their own, so that nobody who depends on Buckia resolves their libraries.
//
// What is measured, and against what, is Buckia's own target BuckiaBenchmarks: `buckia bench` measures a part of it.
let package = Package(
  name: "benchmarks",
  platforms: [.macOS(.v14)],
  dependencies: [
    .package(name: "buckia", path: ".."),
    // Without its traits the library needs no allocator of its own; what is measured here is time and memory.
    .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
  ],
  targets: [
    // What a run leaves for the report: one file a comparison.
    .target(name: "BenchmarkRecords", dependencies: [.buckia("BuckiaBenchmarks")]),

    // Comparisons as benchmarks of the library, and other programs as contenders.
    .target(
      name: "BenchmarkRounds",
      dependencies: ["BenchmarkRecords", .buckia("BuckiaBenchmarks"), .benchmark]),

    // Tables and charts from the records.
    .executableTarget(name: "BenchmarkReport", dependencies: ["BenchmarkRecords", .buckia("BuckiaBenchmarks")]),
    .testTarget(
      name: "BenchmarkReportTests",
      dependencies: ["BenchmarkReport", "BenchmarkRecords", .buckia("BuckiaBenchmarks")]),

    // A process that applies one file, or compares two databases, and says how much memory it took.
    .executableTarget(name: "MemoryProbe", dependencies: [.buckia("Buckia")]),

    .benchmarks("ApplyBenchmarks"),
    .benchmarks("FolderBenchmarks"),
    .benchmarks("DiffBenchmarks"),
    .benchmarks(
      "MemoryBenchmarks",
      [
        "MemoryProbe", .buckia("BuckiaDiffFiles"), .buckia("BuckiaKSUID"), .buckia("SQLiteChangesets"),
        .buckia("SQLiteConnections"), .buckia("SQLiteSchemas"),
      ]),
    .benchmarks("PeerBenchmarks"),
  ],
  swiftLanguageModes: [.v6]
)

extension Target {
  /// A part of the suite.
  static func benchmarks(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .executableTarget(
      name: name, dependencies: ["BenchmarkRounds", .buckia("BuckiaBenchmarks"), .benchmark] + dependencies,
      path: "Benchmarks/\(name)", plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")])
  }
}

extension Target.Dependency {
  static func buckia(_ product: String) -> Target.Dependency { .product(name: product, package: "buckia") }
  static var benchmark: Target.Dependency { .product(name: "Benchmark", package: "benchmark") }
}
