// swift-tools-version: 6.2
import PackageDescription

// Each folder under Sources/ is one target. Dependencies only point down this list: the
// `SQLite…` targets know SQLite and nothing of Buckia, BuckiaApply, BuckiaDiff and everything below
// them need no Foundation, and whoever imports `Buckia` links no networking.
let package = Package(
  name: "buckia",
  platforms: [.macOS(.v14), .iOS(.v17)],
  products: [
    // Other executable targets are products only while this package is the root: dependents don't see them.
    .executable(name: "buckia", targets: ["BuckiaCommand"]),
    .library(name: "Buckia", targets: ["Buckia"]),
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
    .trait(name: "GRDB", description: "Build BuckiaGRDB. Without it GRDB is not even fetched."),
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
    // The command line.
    .executableTarget(
      name: "BuckiaCommand",
      dependencies: [
        "Buckia", "BuckiaBenchmarks", "BuckiaByteStreams", "BuckiaDiffFiles", "BuckiaPageServer", "BuckiaPages",
        "BuckiaReports", "BuckiaSync", "SQLiteConnections",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Yams", package: "Yams"),
      ]),

    // Pages for a browser: what the command draws changes and conflicts with.
    .target(
      name: "BuckiaPages",
      dependencies: ["BuckiaByteStreams", "SQLiteSchemas", .product(name: "Crypto", package: "swift-crypto")]),

    // Hands out pages to the browsers of this computer. It knows nothing of what is on them.
    .target(
      name: "BuckiaPageServer",
      dependencies: [
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),

    // What `make demo` runs: creates the sample databases and runs the command line on them.
    .executableTarget(name: "BuckiaDemo", dependencies: ["SQLiteConnections"]),

    // What `make bench` runs: all comparisons, other programs and memory among them, and the report.
    .executableTarget(
      name: "BuckiaBenchmarkSuite",
      dependencies: [
        "Buckia", "BuckiaBenchmarks", "BuckiaByteStreams", "BuckiaDiffFiles", "BuckiaKSUID", "BuckiaSync",
        "SQLiteChangesets", "SQLiteConnections", "SQLiteSchemas",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),

    // Workloads, the implementations to compare on them, and their timing. Shared by the suite and `buckia bench`.
    .target(
      name: "BuckiaBenchmarks",
      dependencies: [
        "Buckia", "BuckiaAge", "BuckiaApply", "BuckiaByteStreams", "BuckiaDiff", "BuckiaDiffFiles", "BuckiaKSUID",
        "BuckiaLedger", "BuckiaSchemaPlans", "SQLiteChangesets", "SQLiteConnections", "SQLiteSchemas",
      ]),

    // Replicas that exchange diffs in memory, for tests of apps and our own.
    .target(
      name: "BuckiaSimulator",
      dependencies: [
        "Buckia", "BuckiaApply", "BuckiaByteStreams", "BuckiaDiff", "BuckiaDiffFiles", "BuckiaJSON", "BuckiaKSUID",
        "BuckiaLedger", "BuckiaSchemaPlans", "SQLiteChangesets", "SQLiteConnections", "SQLiteSchemas",
      ]),

    // Buckia's calls on connections of GRDB's. Empty without the trait, like all that depends on it.
    .target(
      name: "BuckiaGRDB",
      dependencies: ["Buckia", .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"]))]),

    // SQL functions for any SQLite, which loads them. Only the entry point is visible: the host may have the same Swift code.
    .target(
      name: "BuckiaExtension",
      dependencies: ["Buckia", "BuckiaByteStreams", "BuckiaDiff", "BuckiaReports", "SQLiteConnections"],
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

    // A round of sync: inbound diffs, backups, media and deliveries, over any storage.
    .target(
      name: "BuckiaSync",
      dependencies: [
        "Buckia", "BuckiaByteStreams", "BuckiaDiffFiles", "BuckiaJSON", "BuckiaKSUID", "BuckiaRemoteStorage",
        "BuckiaStorage", "BuckiaTokens", "SQLiteConnections",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ]),

    // Who may do what with a storage: tokens that are kept, renewed and made, sign-in, permissions.
    .target(
      name: "BuckiaTokens",
      dependencies: [
        "BuckiaByteStreams", "BuckiaJSON", "BuckiaRemoteStorage", "BuckiaStorage",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "JWTKit", package: "jwt-kit"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),

    // Storages on servers: S3, WebDAV, Bunny.net, B2. All that needs the network.
    .target(
      name: "BuckiaRemoteStorage",
      dependencies: [
        "BuckiaByteStreams", "BuckiaJSON", "BuckiaStorage",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ]),

    // What a storage is, and a folder as one. No network.
    .target(name: "BuckiaStorage", dependencies: ["BuckiaByteStreams"]),

    // What `--json` prints of reports, for the command and for other languages.
    .target(name: "BuckiaReports", dependencies: ["Buckia"]),

    // The façade: inbound folders, making and reading diff files of databases.
    .target(
      name: "Buckia",
      dependencies: [
        "BuckiaAge", "BuckiaApply", "BuckiaByteStreams", "BuckiaDiff", "BuckiaDiffFiles", "BuckiaIdentities",
        "BuckiaJSON",
        "BuckiaSharing",
      ]),

    // What is shared with others: scopes, and what is known of those who have it.
    .target(
      name: "BuckiaSharing",
      dependencies: [
        "BuckiaApply", "BuckiaByteStreams", "BuckiaDiff", "BuckiaJSON", "BuckiaKSUID", "BuckiaLedger",
        "BuckiaSchemaPlans", "SQLiteChangesets", "SQLiteConnections", "SQLiteFiles", "SQLiteSchemas",
      ]),

    // Encryption in age's format.
    .target(
      name: "BuckiaAge",
      dependencies: [
        "BuckiaByteStreams",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ]),

    // One shipment as a file: manifest, container, compression, signature.
    .target(
      name: "BuckiaDiffFiles",
      dependencies: [
        "BuckiaByteStreams", "BuckiaIdentities", "BuckiaJSON", "BuckiaKSUID", "CBuckiaZstd", "SQLiteChangesets",
        "SQLiteSchemas",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),

    // Who people are and whom they trust: keys, cards, contacts.
    .target(
      name: "BuckiaIdentities",
      dependencies: [
        "BuckiaByteStreams", "BuckiaJSON", "SQLiteSchemas", .product(name: "Crypto", package: "swift-crypto"),
      ]),

    // JSON as data, strictly read; hexadecimal text.
    .target(name: "BuckiaJSON", dependencies: ["SQLiteChangesets", "SQLiteSchemas"]),

    // The receiver: from verified changes to rows. No Foundation from here down.
    .target(
      name: "BuckiaApply",
      dependencies: [
        "BuckiaByteStreams", "BuckiaKSUID", "BuckiaLedger", "BuckiaSchemaPlans", "SQLiteChangesets",
        "SQLiteConnections", "SQLiteSchemas",
      ]),

    // The difference of two databases as a changeset.
    .target(
      name: "BuckiaDiff",
      dependencies: [
        "BuckiaByteStreams", "BuckiaSchemaPlans", "SQLiteChangesets", "SQLiteConnections", "SQLiteFiles",
        "SQLiteSchemas",
      ]),

    // The tables in the user's database that record what was applied.
    .target(
      name: "BuckiaLedger",
      dependencies: [
        "BuckiaByteStreams", "BuckiaKSUID", "BuckiaSchemaPlans", "CBuckiaZstd", "SQLiteChangesets",
        "SQLiteConnections", "SQLiteSchemas",
      ]),

    // What two definitions of a table have in common, and the steps between them.
    .target(name: "BuckiaSchemaPlans", dependencies: ["SQLiteChangesets", "SQLiteConnections", "SQLiteSchemas"]),
    .target(name: "SQLiteChangesets", dependencies: ["BuckiaByteStreams"]),
    .target(name: "SQLiteFiles"),
    .target(name: "SQLiteSchemas"),
    .target(name: "BuckiaKSUID"),
    .target(name: "SQLiteConnections", dependencies: ["CBuckiaSQLite"]),

    // Where bytes come from and go to: files, memory, temporary buffers, and what is put in between.
    .target(name: "BuckiaByteStreams"),

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
      dependencies: ["BuckiaApply", "BuckiaDiff", "BuckiaKSUID", "SQLiteChangesets", "SQLiteConnections"],
      path: "Tests/EngineLinkageProbe"),
    .executableTarget(name: "FacadeLinkageProbe", dependencies: ["Buckia"], path: "Tests/FacadeLinkageProbe"),
    .target(
      name: "CTestSupport", path: "Tests/CTestSupport",
      cSettings: [.define("BUCKIA_LINKS_SQLITE", .when(traits: ["LinkedSQLite"]))]),
    .target(
      name: "TestSupport", dependencies: ["BuckiaByteStreams", "CTestSupport", "SQLiteConnections"],
      path: "Tests/TestSupport"),
    .target(
      name: "ReplicationTestSupport", dependencies: ["BuckiaApply", "BuckiaDiff", "TestSupport"],
      path: "Tests/ReplicationTestSupport"),
    .target(
      name: "ServerTestSupport",
      dependencies: [
        "BuckiaRemoteStorage", "TestSupport",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"), .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      path: "Tests/ServerTestSupport"),
    .testTarget(name: "BuckiaByteStreamsTests", dependencies: ["BuckiaByteStreams", "TestSupport"]),
    .testTarget(name: "BuckiaAgeTests", dependencies: ["BuckiaAge", "BuckiaByteStreams", "TestSupport"]),
    .testTarget(name: "BuckiaKSUIDTests", dependencies: ["BuckiaKSUID", "TestSupport"]),
    .testTarget(
      name: "SQLiteChangesetsTests", dependencies: ["SQLiteChangesets", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "SQLiteConnectionsTests", dependencies: ["SQLiteConnections", "TestSupport"]),
    .testTarget(
      name: "SQLiteFilesTests", dependencies: ["SQLiteFiles", "SQLiteConnections", "TestSupport"]),
    .testTarget(name: "SQLiteSchemasTests", dependencies: ["SQLiteSchemas", "SQLiteConnections", "TestSupport"]),
    .testTarget(
      name: "BuckiaDiffFilesTests",
      dependencies: ["BuckiaByteStreams", "BuckiaDiffFiles", "BuckiaJSON", "TestSupport"],
      resources: [.copy("Vectors")]),
    .testTarget(
      name: "BuckiaStorageTests", dependencies: ["BuckiaStorage", "TestSupport"]),
    .testTarget(
      name: "BuckiaRemoteStorageTests",
      dependencies: [
        "BuckiaRemoteStorage", "BuckiaStorage", "ServerTestSupport", "TestSupport",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ]),
    .testTarget(
      name: "BuckiaTokensTests",
      dependencies: [
        "BuckiaByteStreams", "BuckiaJSON", "BuckiaRemoteStorage", "BuckiaStorage", "BuckiaTokens", "TestSupport",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "JWTKit", package: "jwt-kit"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    .testTarget(
      name: "BuckiaSyncTests",
      dependencies: [
        "BuckiaRemoteStorage", "BuckiaSync", "ServerTestSupport", "SQLiteConnections", "TestSupport",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
      ]),
    .testTarget(name: "BuckiaIdentitiesTests", dependencies: ["BuckiaIdentities", "TestSupport"]),
    .testTarget(name: "BuckiaSchemaPlansTests", dependencies: ["BuckiaSchemaPlans", "SQLiteConnections"]),
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
      name: "BuckiaPageServerTests",
      dependencies: ["BuckiaPageServer", "TestSupport", .product(name: "NIOHTTP1", package: "swift-nio")]),
    .testTarget(
      name: "BuckiaPagesTests",
      dependencies: ["BuckiaPages", "SQLiteSchemas", "TestSupport", .product(name: "Crypto", package: "swift-crypto")]),
    .testTarget(
      name: "BuckiaCommandTests",
      dependencies: [
        "BuckiaCommand", "Buckia", "BuckiaPages", "BuckiaReports", "FacadeLinkageProbe", "ServerTestSupport",
        "SQLiteConnections", "TestSupport",
      ]),
    // A program in C that loads the extension, with any copy of SQLite.
    .executableTarget(name: "ExtensionHost", path: "Tests/ExtensionHost"),
    .testTarget(
      name: "BuckiaExtensionTests", dependencies: ["Buckia", "SQLiteConnections", "TestSupport"]),
    // An app that uses GRDB: an example, which is a part of the documentation.
    .executableTarget(
      name: "GRDBNotes",
      dependencies: [
        "Buckia", "BuckiaGRDB", .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"])),
      ],
      path: "Tests/GRDBNotes"),
    .testTarget(
      name: "BuckiaGRDBTests",
      dependencies: [
        "Buckia", "BuckiaGRDB", "GRDBNotes", "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"])),
      ]),
    // The documentation's code samples. `import Buckia` must be enough for them, or that of another product.
    .testTarget(
      name: "DocumentationTests",
      dependencies: [
        "Buckia", "BuckiaGRDB", "BuckiaSimulator", "BuckiaSync", "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"])),
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
      name: "BuckiaC", dependencies: ["Buckia", "BuckiaByteStreams", "BuckiaJSON", "BuckiaReports", "CBuckia"]),
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
    "BuckiaAge", "BuckiaApply", "BuckiaByteStreams", "BuckiaDiff", "BuckiaDiffFiles", "BuckiaJSON", "BuckiaKSUID",
    "BuckiaLedger", "BuckiaPages", "BuckiaSchemaPlans", "ReplicationTestSupport", "SQLiteChangesets",
    "SQLiteConnections", "SQLiteFiles", "SQLiteSchemas",
  ]
  for target in package.targets where tried.contains(target.name) {
    target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-O", "-assert-config", "Debug"])]
  }
}
