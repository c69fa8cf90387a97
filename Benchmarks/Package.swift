// swift-tools-version: 6.2
import PackageDescription

// Benchmarks are a package of their own, so that nobody who depends on Buckia resolves their libraries.
let package = Package(
  name: "benchmarks",
  platforms: [.macOS(.v14)],
  dependencies: [
    .package(name: "buckia", path: ".."),
    // Without its traits the library needs no allocator of its own; what is measured here is time and memory.
    .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
  ],
  targets: [
    .target(
      name: "Workloads",
      dependencies: [
        .product(name: "BuckiaEngine", package: "buckia"),
        .product(name: "SQLiteChangesets", package: "buckia"),
        .product(name: "SQLiteConnections", package: "buckia"),
      ]),
    .executableTarget(
      name: "ApplyBenchmarks",
      dependencies: ["Workloads", .product(name: "Benchmark", package: "benchmark")],
      path: "Benchmarks/ApplyBenchmarks",
      plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]),
  ],
  swiftLanguageModes: [.v6]
)
