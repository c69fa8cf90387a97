// swift-tools-version: 6.2
import PackageDescription

// Each folder under Sources/ is one target; what measures and demonstrates is under Benchmarks/. That is no package of its own: it
// would see nothing of the engine but its public interface, and build all of it once more. Dependencies only point down this list:
// the `SQLite…` targets know SQLite and nothing of diff files; BuckiaApply, BuckiaDiff and everything below them need no
// Foundation; and whoever imports `Buckia` links no networking.
//
// An app that imports only `Buckia` fetches swift-crypto, and what that needs. What other products use is fetched with their traits.
let grdb = TargetDependencyCondition.when(traits: ["GRDB"])
let sync = TargetDependencyCondition.when(traits: ["Sync"])
let command = TargetDependencyCondition.when(traits: ["Command"])

let package = Package(
  name: "buckia",
  platforms: [.macOS(.v14), .iOS(.v17)],
  products: [
    // Other executable targets are products only while this package is the root: dependents don't see them.
    .executable(name: "buckia", targets: ["BuckiaCommand"]),
    .library(name: "Buckia", targets: ["Buckia"]),
    .library(name: "BuckiaBackup", targets: ["BuckiaBackup"]),
    .library(name: "BuckiaSync", targets: ["BuckiaSync"]),
    .library(name: "BuckiaSimulator", targets: ["BuckiaSimulator"]),
    .library(name: "BuckiaGRDB", targets: ["BuckiaGRDB"]),
    // A loadable extension of SQLite: `make extension`.
    .library(name: "BuckiaExtension", type: .dynamic, targets: ["BuckiaExtension"]),
    .library(name: "SQLiteChangesets", targets: ["SQLiteChangesets"]),
    .library(name: "SQLiteFiles", targets: ["SQLiteFiles"]),
  ],
  traits: [
    .default(enabledTraits: ["LinkedSQLite"]),
    .trait(name: "LinkedSQLite", description: "Link SQLite. A loadable extension uses its host's copy instead."),
    .trait(name: "GRDB", description: "Build BuckiaGRDB."),
    .trait(name: "Sync", description: "Build BuckiaSync."),
    .trait(name: "Command", description: "Build the command line.", enabledTraits: ["Sync"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.0.0"),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.1.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    // The command line, with the pages that it draws for a browser and their server.
    .executableTarget(
      name: "BuckiaCommand",
      dependencies: [
        "Buckia", "BuckiaBackup", "BuckiaBenchmarks", "BuckiaBytes", "BuckiaFormat", "BuckiaStorage", "BuckiaSync",
        "SQLiteConnections", "SQLiteSchemas",
        .product(name: "ArgumentParser", package: "swift-argument-parser", condition: command),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio", condition: sync),
        .product(name: "NIOCore", package: "swift-nio", condition: sync),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: sync),
        .product(name: "NIOPosix", package: "swift-nio", condition: sync),
        .product(name: "Yams", package: "Yams", condition: command),
      ]),

    // What `make demo` runs: creates the sample databases and runs the command line on them.
    .executableTarget(
      name: "BuckiaDemo", dependencies: ["BuckiaBytes", "SQLiteConnections"], path: "Benchmarks/BuckiaDemo"),

    // What `make bench` runs: all comparisons, other programs and memory among them, and the report.
    .executableTarget(
      name: "BuckiaBenchmarkSuite",
      dependencies: [
        "Buckia", "BuckiaBackup", "BuckiaBenchmarks", "BuckiaBytes", "BuckiaFormat", "BuckiaStorage", "BuckiaSync",
        "SQLiteChangesets", "SQLiteConnections", "SQLiteSchemas",
        .product(name: "ArgumentParser", package: "swift-argument-parser", condition: command),
      ],
      path: "Benchmarks/BuckiaBenchmarkSuite"),

    // Workloads, the implementations to compare on them, and their timing. Shared by the suite and `buckia bench`.
    .target(
      name: "BuckiaBenchmarks",
      dependencies: [
        "Buckia", "BuckiaApply", "BuckiaBytes", "BuckiaDiff", "BuckiaFormat", "BuckiaLedger", "SQLiteChangesets",
        "SQLiteConnections", "SQLiteSchemas",
      ],
      path: "Benchmarks/BuckiaBenchmarks"),

    // Replicas that exchange diffs in memory, for tests of apps and our own.
    .target(
      name: "BuckiaSimulator",
      dependencies: [
        "Buckia", "BuckiaApply", "BuckiaBytes", "BuckiaDiff", "BuckiaFormat", "BuckiaLedger", "SQLiteChangesets",
        "SQLiteConnections", "SQLiteSchemas",
      ]),

    // Buckia's calls on connections of GRDB's. Empty without the trait, like all that depends on it.
    .target(
      name: "BuckiaGRDB",
      dependencies: ["Buckia", .product(name: "GRDB", package: "GRDB.swift", condition: grdb)]),

    // SQL functions for any SQLite, which loads them. Only the entry point is visible: the host may have the same Swift code.
    .target(
      name: "BuckiaExtension",
      dependencies: ["Buckia", "BuckiaBytes", "BuckiaDiff", "SQLiteConnections"],
      exclude: ["collect", "exports.map"],
      linkerSettings: [
        .unsafeFlags(
          [
            "--version-script=\(Context.packageDirectory)/Sources/BuckiaExtension/exports.map", "-Bsymbolic", "-z",
            "nodelete",
          ].flatMap { ["-Xlinker", $0] }, .when(platforms: [.linux])),
        .unsafeFlags(
          ["-exported_symbol", "_sqlite3_buckia_init"].flatMap { ["-Xlinker", $0] }, .when(platforms: [.macOS])),
      ]),

    // A round of sync: inbound diffs, backups, media and deliveries, over any storage. All that needs the network:
    // storages on servers (S3, WebDAV, Bunny.net, B2), tokens and sign-in.
    .target(
      name: "BuckiaSync",
      dependencies: [
        "Buckia", "BuckiaBackup", "BuckiaBytes", "BuckiaFormat", "BuckiaStorage", "SQLiteConnections",
        .product(name: "AsyncHTTPClient", package: "async-http-client", condition: sync),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "JWTKit", package: "jwt-kit", condition: sync),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio", condition: sync),
        .product(name: "NIOCore", package: "swift-nio", condition: sync),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: sync),
        .product(name: "NIOPosix", package: "swift-nio", condition: sync),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: sync),
      ]),

    // What a storage is, and a folder as one. No network.
    .target(
      name: "BuckiaStorage",
      dependencies: ["BuckiaBytes", .product(name: "Crypto", package: "swift-crypto")]),
    // States of databases in a storage, and how to restore them.
    .target(
      name: "BuckiaBackup",
      dependencies: [
        "Buckia", "BuckiaBytes", "BuckiaFormat", "BuckiaStorage", "SQLiteConnections", "SQLiteFiles",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),

    // The façade: inbound folders, making and reading diff files of databases, and what reports are as JSON.
    .target(
      name: "Buckia",
      dependencies: ["BuckiaApply", "BuckiaBytes", "BuckiaDiff", "BuckiaFormat", "BuckiaSharing"]),

    // What is shared with others: scopes, and what is known of those who have it.
    .target(
      name: "BuckiaSharing",
      dependencies: [
        "BuckiaApply", "BuckiaBytes", "BuckiaDiff", "BuckiaLedger", "SQLiteChangesets", "SQLiteConnections",
        "SQLiteFiles", "SQLiteSchemas",
      ]),

    // One shipment as a file: manifest, container, compression, signature, encryption in age's format; and who people
    // are and whom they trust.
    .target(
      name: "BuckiaFormat",
      dependencies: [
        "BuckiaBytes", "CBuckiaZstd", "SQLiteChangesets", "SQLiteSchemas",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ]),

    // The receiver: from verified changes to rows. No Foundation from here down.
    .target(
      name: "BuckiaApply",
      dependencies: ["BuckiaBytes", "BuckiaLedger", "SQLiteChangesets", "SQLiteConnections", "SQLiteSchemas"]),

    // The difference of two databases as a changeset.
    .target(
      name: "BuckiaDiff",
      dependencies: ["BuckiaBytes", "SQLiteChangesets", "SQLiteConnections", "SQLiteFiles", "SQLiteSchemas"]),

    // The tables in the user's database that record what was applied.
    .target(
      name: "BuckiaLedger",
      dependencies: ["BuckiaBytes", "CBuckiaZstd", "SQLiteChangesets", "SQLiteConnections", "SQLiteSchemas"]),

    // Definitions of tables, what two of them have in common, and the steps between them.
    .target(name: "SQLiteSchemas", dependencies: ["BuckiaBytes", "SQLiteChangesets", "SQLiteConnections"]),
    .target(name: "SQLiteChangesets", dependencies: ["BuckiaBytes"]),
    .target(name: "SQLiteFiles", dependencies: ["BuckiaBytes"]),
    .target(name: "SQLiteConnections", dependencies: ["BuckiaBytes", "CBuckiaSQLite"]),

    // Files and streams of bytes, KSUIDs, JSON, and text that is safe to show.
    .target(name: "BuckiaBytes"),

    // SQLite's functions, called through a table. Without the trait no SQLite is linked: whoever uses such a build hands
    // a copy over.
    .target(
      name: "CBuckiaSQLite",
      cSettings: [.define("BUCKIA_LINKS_SQLITE", .when(traits: ["LinkedSQLite"]))],
      linkerSettings: [.linkedLibrary("sqlite3", .when(traits: ["LinkedSQLite"]))]),
    .systemLibrary(
      name: "CBuckiaZstd",
      providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),

    // Tests.
    .executableTarget(
      name: "EngineLinkageProbe",
      dependencies: ["BuckiaApply", "BuckiaBytes", "BuckiaDiff", "SQLiteChangesets", "SQLiteConnections"],
      path: "Tests/EngineLinkageProbe"),
    .executableTarget(name: "FacadeLinkageProbe", dependencies: ["Buckia"], path: "Tests/FacadeLinkageProbe"),
    .target(
      name: "CTestSupport", path: "Tests/CTestSupport",
      cSettings: [.define("BUCKIA_LINKS_SQLITE", .when(traits: ["LinkedSQLite"]))]),
    .target(
      name: "TestSupport", dependencies: ["BuckiaBytes", "CTestSupport", "SQLiteConnections"],
      path: "Tests/TestSupport"),
    .target(
      name: "ReplicationTestSupport", dependencies: ["BuckiaApply", "BuckiaDiff", "TestSupport"],
      path: "Tests/ReplicationTestSupport"),
    .target(
      name: "ServerTestSupport",
      dependencies: [
        "BuckiaSync", "TestSupport",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio", condition: sync),
        .product(name: "NIOCore", package: "swift-nio", condition: sync),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: sync),
        .product(name: "NIOPosix", package: "swift-nio", condition: sync),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: sync),
      ],
      path: "Tests/ServerTestSupport"),
    .testTarget(name: "BuckiaBytesTests", dependencies: ["BuckiaBytes", "TestSupport"]),
    .testTarget(
      name: "SQLiteChangesetsTests", dependencies: ["SQLiteChangesets", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "SQLiteConnectionsTests", dependencies: ["SQLiteConnections", "TestSupport"]),
    .testTarget(name: "SQLiteFilesTests", dependencies: ["SQLiteFiles", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "SQLiteSchemasTests", dependencies: ["SQLiteSchemas", "SQLiteConnections", "TestSupport"]),
    .testTarget(
      name: "BuckiaFormatTests", dependencies: ["BuckiaBytes", "BuckiaFormat", "TestSupport"],
      resources: [.copy("DiffFiles/Vectors")]),
    .testTarget(
      name: "BuckiaBackupTests",
      dependencies: [
        "Buckia", "BuckiaBackup", "BuckiaBytes", "BuckiaFormat", "BuckiaStorage", "SQLiteConnections", "TestSupport",
      ]),
    .testTarget(
      name: "BuckiaStorageTests", dependencies: ["BuckiaStorage", "TestSupport"]),
    .testTarget(
      name: "BuckiaSyncTests",
      dependencies: [
        "BuckiaBytes", "BuckiaStorage", "BuckiaSync", "ServerTestSupport", "SQLiteConnections", "TestSupport",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "JWTKit", package: "jwt-kit", condition: sync),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio", condition: sync),
        .product(name: "NIOCore", package: "swift-nio", condition: sync),
        .product(name: "NIOPosix", package: "swift-nio", condition: sync),
      ]),
    .testTarget(name: "BuckiaSharingTests", dependencies: ["BuckiaSharing", "ReplicationTestSupport", "TestSupport"]),
    .testTarget(name: "BuckiaDiffTests", dependencies: ["BuckiaDiff", "ReplicationTestSupport", "TestSupport"]),
    .testTarget(
      name: "BuckiaApplyTests",
      dependencies: ["BuckiaApply", "BuckiaDiff", "ReplicationTestSupport", "TestSupport", "EngineLinkageProbe"]),
    .testTarget(name: "BuckiaLedgerTests", dependencies: ["BuckiaLedger", "SQLiteConnections", "TestSupport"]),
    .testTarget(
      name: "BuckiaBenchmarksTests",
      dependencies: ["BuckiaBenchmarks", "BuckiaBenchmarkSuite", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "BuckiaTests", dependencies: ["Buckia", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "BuckiaSimulatorTests", dependencies: ["BuckiaSimulator", "SQLiteConnections", "TestSupport"]),
    .testTarget(
      name: "BuckiaCommandTests",
      dependencies: [
        "BuckiaCommand", "Buckia", "FacadeLinkageProbe", "ServerTestSupport", "SQLiteConnections", "SQLiteSchemas",
        "TestSupport",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: sync),
      ]),
    // A program in C that loads the extension, with any copy of SQLite.
    .executableTarget(name: "ExtensionHost", path: "Tests/ExtensionHost"),
    .testTarget(
      name: "BuckiaExtensionTests", dependencies: ["Buckia", "SQLiteConnections", "TestSupport"]),
    // An app that uses GRDB: an example, which is a part of the documentation.
    .executableTarget(
      name: "GRDBNotes",
      dependencies: [
        "Buckia", "BuckiaGRDB", .product(name: "GRDB", package: "GRDB.swift", condition: grdb),
      ],
      path: "Tests/GRDBNotes"),
    .testTarget(
      name: "BuckiaGRDBTests",
      dependencies: [
        "Buckia", "BuckiaGRDB", "GRDBNotes", "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift", condition: grdb),
      ]),
    // The documentation's code samples. `import Buckia` must be enough for them, or that of another product.
    .testTarget(
      name: "DocumentationTests",
      dependencies: [
        "Buckia", "BuckiaGRDB", "BuckiaSimulator", "BuckiaSync", "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift", condition: grdb),
      ]),
  ],
  swiftLanguageModes: [.v6]
)

// Apple wants each library to say what it uses that could tell devices apart. Elsewhere that would only be a folder beside every program.
for target in package.targets where target.name == "Buckia" {
  #if os(macOS)
    target.resources = [.copy("PrivacyInfo.xcprivacy")]
  #else
    target.exclude.append("PrivacyInfo.xcprivacy")
  #endif
}

// The C library: `buckia.h`, and the functions that it declares. They are written with `@c`, which Swift 6.3 has.
#if compiler(>=6.3)
  package.products.append(.library(name: "BuckiaC", type: .dynamic, targets: ["BuckiaC"]))
  package.targets += [
    .target(
      name: "BuckiaC", dependencies: ["Buckia", "BuckiaBackup", "BuckiaBytes", "BuckiaStorage", "CBuckia"]),
    .target(name: "CBuckia", exclude: ["buckia.pc.in", "collect"]),
    .testTarget(
      name: "BuckiaCTests", dependencies: ["BuckiaCommand", "TestSupport"],
      exclude: ["Programs"]),
  ]
#endif

// Random cases take most of the time of the tests. With this variable, which `make test` sets, the code that they try is optimised, and keeps its
// assertions. A package that depends on this one never sees it.
if Context.environment["BUCKIA_OPTIMIZED_TESTS"] != nil {
  // Of the modules above the engine too little time is spent in their own code for what it takes to optimise them.
  let tried: Set = [
    "BuckiaApply", "BuckiaBytes", "BuckiaDiff", "BuckiaFormat", "BuckiaLedger", "BuckiaSharing",
    "ReplicationTestSupport",
    "SQLiteChangesets", "SQLiteConnections", "SQLiteFiles", "SQLiteSchemas",
  ]
  for target in package.targets where tried.contains(target.name) {
    target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-O", "-assert-config", "Debug"])]
  }
}
