import BuckiaBytes
import Foundation
import NIOConcurrencyHelpers
import TestSupport
import Testing

@testable import BuckiaSync

/// Records the statements that run on threads of the cooperative pool, on databases below folders named `pool-watch`.
/// Only such a thread has a current task.
private enum PoolWatch {
  static let statements = NIOLockedValueBox<(onPool: [String], elsewhere: Int)>(([], 0))

  private typealias Trace =
    @convention(c) (UInt32, UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?) -> Int32
  private typealias SetTrace = @convention(c) (OpaquePointer, UInt32, Trace?, UnsafeMutableRawPointer?) -> Int32
  private typealias FileName = @convention(c) (OpaquePointer, UnsafePointer<CChar>) -> UnsafePointer<CChar>?
  private typealias Entry =
    @convention(c) (OpaquePointer, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32
  private typealias Register = @convention(c) (Entry) -> Int32

  private static let functions = Result {
    let library = try LoadedSQLite.linked.get()
    return (
      trace: try library.function("sqlite3_trace_v2", as: SetTrace.self),
      name: try library.function("sqlite3_db_filename", as: FileName.self)
    )
  }

  /// Watches connections that are opened from now on.
  static let isWatching = Result {
    let register = try LoadedSQLite.linked.get().function("sqlite3_auto_extension", as: Register.self)
    _ = try functions.get()
    return register { connection, _, _ in
      guard case .success(let functions) = functions,
        let path = functions.name(connection, "main").map({ String(cString: $0) }),
        // The index has its own threads, with tasks.
        path.contains("/pool-watch/"), !path.contains("/home/sync/")
      else { return 0 }
      // SQLITE_TRACE_STMT
      return functions.trace(
        connection, 1,
        { _, _, _, sql in
          let isOnPool = withUnsafeCurrentTask { $0 != nil }
          PoolWatch.statements.withLockedValue { found in
            if isOnPool { found.onPool.append(sql.map { String(cString: $0) } ?? "") } else { found.elsewhere += 1 }
          }
          return 0
        }, nil)
    } == 0
  }
}

#if os(Linux)
  /// The folders below one folder that are read on threads of the cooperative pool.
  private enum ReadFolders {
    static let folders = NIOLockedValueBox<(root: String, onPool: Set<String>, elsewhere: Set<String>)>(("", [], []))

    typealias OpenFolder = @convention(c) (UnsafePointer<CChar>) -> OpaquePointer?
    // RTLD_NEXT: the C library's own function. Sound: the type is that of `opendir`.
    static let open = unsafeBitCast(dlsym(UnsafeMutableRawPointer(bitPattern: -1), "opendir"), to: OpenFolder.self)
  }

  /// The function that this program calls in place of the C library's function of that name.
  @_cdecl("opendir") func openFolder(_ path: UnsafePointer<CChar>) -> OpaquePointer? {
    let isOnPool = withUnsafeCurrentTask { $0 != nil }
    ReadFolders.folders.withLockedValue { found in
      guard !found.root.isEmpty else { return }
      let path = String(cString: path)
      guard path.hasPrefix(found.root) else { return }
      if isOnPool {
        found.onPool.insert(String(path.dropFirst(found.root.count)))
      } else {
        found.elsewhere.insert(String(path.dropFirst(found.root.count)))
      }
    }
    return ReadFolders.open(path)
  }
#endif

@Suite("Threads of the cooperative pool do not wait for the disk")
struct CooperativePoolTests {
  @Test("A round only reads and writes the database on other threads")
  func database() async throws {
    #expect(try PoolWatch.isWatching.get())
    let bench = try SyncBench()
    let devices = try ["pool-watch", "laptop"].map {
      try SyncPerson.device($0, of: "ben", in: bench.folder, bench.watched)
    }
    var ben = devices[0]
    let anna = try bench.person("anna")
    ben.options.apply.snapshot = bench.folder.file("pool-watch/known.sqlite")
    ben.options.fetches = ["**"]
    for device in devices { try await device.sync() }
    let bad = "ben/inbound/3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff"
    try await bench.local.put(StorageContents(Array("no diff".utf8)), to: RemotePath(bad), .none)
    for number in 1...2 {
      try anna.run("INSERT INTO note VALUES (\(number),hex(randomblob(3000)))")
      try anna.write()
      try await anna.sync(to: ["ben"])
    }
    try await devices[1].sync()
    try ben.run("INSERT INTO note VALUES (100,'x')")
    // The test's own statements on this thread are recorded.
    #expect(PoolWatch.statements.withLockedValue { !$0.onPool.isEmpty })
    PoolWatch.statements.withLockedValue { $0 = ([], 0) }
    let first = try await ben.sync()
    #expect(first.applied?.applied.count == 2 && first.applied?.rejected.count == 1)
    #expect(first.dropped.count == 2)
    // The refused file is read again.
    #expect(try await ben.sync().applied?.rejected.count == 1)
    ben.options.looksThroughStorage = true
    try await ben.sync()
    ben.options.isDryRun = true
    try await ben.sync()
    try await BuckiaClient(ben.configuration()).restoreBackup(to: bench.folder.file("pool-watch/restored.sqlite"))
    let (onPool, elsewhere) = PoolWatch.statements.withLockedValue { $0 }
    #expect(onPool == [])
    #expect(elsewhere > 100)
  }

  #if os(Linux)
    @Test("A round reads folders on other threads")
    func folders() async throws {
      let bench = try SyncBench()
      let storage = bench.folder.file("folder storage")
      let mirror = bench.folder.file("mirror")
      func person(_ name: String) throws -> SyncPerson {
        var person = try bench.person(name)
        person.change = {
          $0.storage = StorageAccount(.localFolder(storage))
          $0.mirrors = [StorageAccount(.localFolder(mirror))]
        }
        person.options.fetches = ["**"]
        return person
      }
      let anna = try person("anna")
      var ben = try person("ben")
      ben.options.apply.snapshot = bench.folder.file("ben/known.sqlite")
      try ben.addMedia([1], "originals/a.jpg")
      try bench.folder.makeFolder("ben/outbox")
      try await ben.sync(to: ["anna"])
      for number in 1...2 {
        try anna.run("INSERT INTO note VALUES (\(number),hex(randomblob(3000)))")
        try anna.write()
        try await anna.sync(to: ["ben"])
      }
      try ben.run("INSERT INTO note VALUES (100,'x')")
      try ben.write()
      try ben.addMedia([2], "originals/b.jpg")
      let others = LocalFolder(storage)
      try await others.put(StorageContents([3]), to: RemotePath("ben/originals/c.jpg"), .none)
      try await others.put(
        StorageContents(Array("no diff".utf8)), to: RemotePath("ben/inbound/3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff"), .none)
      ReadFolders.folders.withLockedValue { $0 = (bench.folder.path, [], []) }
      // The test's own reads on this thread are recorded.
      _ = try FolderNames.all(in: ben.outbox)
      #expect(ReadFolders.folders.withLockedValue { $0.onPool } == ["/ben/outbox"])
      let client = try BuckiaClient(ben.configuration(to: ["anna"]))
      ReadFolders.folders.withLockedValue { $0 = (bench.folder.path, [], []) }
      let first = try await client.sync(ben.options)
      #expect(first.failures.isEmpty, "\(first.failures)")
      #expect(first.applied?.applied.count == 2 && first.delivered.count == 1 && first.fetched.count == 1)
      ben.options.looksThroughStorage = true
      _ = try await client.sync(ben.options)
      ben.options.isDryRun = true
      _ = try await client.sync(ben.options)
      try await client.restoreBackup(to: bench.folder.file("ben/restored.sqlite"))
      let (_, onPool, elsewhere) = ReadFolders.folders.withLockedValue { $0 }
      ReadFolders.folders.withLockedValue { $0 = ("", [], []) }
      #expect(onPool == [])
      for path in ["/ben/files/ben/inbound", "/ben/files/ben/originals", "/ben/outbox", "/folder storage/ben/inbound"] {
        #expect(elsewhere.contains(path), "\(path) of \(elsewhere)")
      }
    }
  #endif
}
