// swift-tools-version: 6.2
import PackageDescription

// Each folder under Sources/ is one target. Dependencies only point down this list: the
// `SQLite…` targets know SQLite and nothing of Buckia, BuckiaEngine and everything below it
// need no Foundation, and whoever imports `Buckia` links no networking.
let package = Package(
  name: "buckia",
  platforms: [.macOS(.v14), .iOS(.v17)],
  products: [
    .executable(name: "buckia", targets: ["BuckiaCommand"]),
    .library(name: "Buckia", targets: ["Buckia"]),
    // For the package in Benchmarks/, which could not share the workloads with `buckia bench` otherwise.
    .library(name: "BuckiaBenchmarks", targets: ["BuckiaBenchmarks"]),
    .library(name: "BuckiaDiffFiles", targets: ["BuckiaDiffFiles"]),
    .library(name: "BuckiaEngine", targets: ["BuckiaEngine"]),
    .library(name: "BuckiaKSUID", targets: ["BuckiaKSUID"]),
    .library(name: "SQLiteChangesets", targets: ["SQLiteChangesets"]),
    .library(name: "SQLiteConnections", targets: ["SQLiteConnections"]),
    .library(name: "SQLiteFiles", targets: ["SQLiteFiles"]),
    .library(name: "SQLiteSchemas", targets: ["SQLiteSchemas"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
  ],
  targets: [
    // The command line.
    .executableTarget(
      name: "BuckiaCommand",
      dependencies: [
        "Buckia", "BuckiaBenchmarks", "BuckiaDiffFiles", "BuckiaEngine", "BuckiaKSUID", "SQLiteChangesets",
        "SQLiteConnections", "SQLiteSchemas",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),

    // What `make demo` runs: makes the sample databases and lets the command line work on them.
    .executableTarget(name: "BuckiaDemo", dependencies: ["SQLiteConnections"]),

    // What is measured against what: workloads, their alternatives, and rounds that keep the comparison fair.
    .target(
      name: "BuckiaBenchmarks",
      dependencies: [
        "Buckia", "BuckiaDiffFiles", "BuckiaEngine", "BuckiaKSUID", "SQLiteChangesets", "SQLiteConnections",
        "SQLiteSchemas",
      ]),

    // The façade: inbound folders, making and reading diff files of databases.
    .target(name: "Buckia", dependencies: ["BuckiaDiffFiles", "BuckiaEngine"]),

    // One shipment as a file: manifest, container, compression, signature.
    .target(
      name: "BuckiaDiffFiles",
      dependencies: [
        "BuckiaKSUID", "CBuckiaZstd", "SQLiteChangesets", "SQLiteSchemas",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),

    // The replication engine: diff, schema plan, apply, conflicts, ledger. No Foundation from here down.
    .target(
      name: "BuckiaEngine",
      dependencies: ["BuckiaKSUID", "SQLiteChangesets", "SQLiteConnections", "SQLiteFiles", "SQLiteSchemas"]),
    .target(name: "SQLiteChangesets"),
    .target(name: "SQLiteFiles"),
    .target(name: "SQLiteSchemas"),
    .target(name: "BuckiaKSUID"),
    .target(name: "SQLiteConnections", dependencies: ["CBuckiaSQLite"]),

    .systemLibrary(
      name: "CBuckiaSQLite",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(
      name: "CBuckiaZstd",
      providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),

    // Tests.
    .executableTarget(
      name: "EngineLinkageProbe",
      dependencies: ["BuckiaEngine", "BuckiaKSUID", "SQLiteChangesets", "SQLiteConnections"],
      path: "Tests/EngineLinkageProbe"),
    .target(name: "TestSupport", dependencies: ["SQLiteConnections"], path: "Tests/TestSupport"),
    .testTarget(name: "BuckiaKSUIDTests", dependencies: ["BuckiaKSUID", "TestSupport"]),
    .testTarget(
      name: "SQLiteChangesetsTests", dependencies: ["SQLiteChangesets", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "SQLiteConnectionsTests", dependencies: ["SQLiteConnections", "TestSupport"]),
    .testTarget(
      name: "SQLiteFilesTests", dependencies: ["SQLiteFiles", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "SQLiteSchemasTests", dependencies: ["SQLiteSchemas", "SQLiteConnections", "TestSupport"]),
    .testTarget(
      name: "BuckiaDiffFilesTests",
      dependencies: ["BuckiaDiffFiles", "TestSupport"],
      resources: [.copy("Vectors")]),
    .testTarget(
      name: "BuckiaEngineTests",
      dependencies: ["BuckiaEngine", "SQLiteConnections", "TestSupport", "EngineLinkageProbe"]),
    .testTarget(
      name: "BuckiaBenchmarksTests", dependencies: ["BuckiaBenchmarks", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "BuckiaTests", dependencies: ["Buckia", "SQLiteConnections", "TestSupport"]),
    .testTarget(
      name: "BuckiaCommandTests", dependencies: ["BuckiaCommand", "Buckia", "SQLiteConnections", "TestSupport"]),
  ],
  swiftLanguageModes: [.v6]
)
