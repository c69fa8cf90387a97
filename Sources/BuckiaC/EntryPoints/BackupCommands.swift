import Buckia
import BuckiaBackup
import BuckiaBytes
import BuckiaStorage

extension Command {
  /// The commands of backup stores, which are local folders here.
  static let backups: [String: @Sendable (Command) throws -> JSONValue] = [
    "backup": { command in
      var options = BackupOptions()
      options.note = try command.optionalText("note")
      options.recipients = try command.recipients() ?? []
      options.encrypts = try !command.flag("unencrypted")
      options.signs = try !command.flag("unsigned")
      options.acceptsDamage = try command.flag("acceptDamage")
      let policy = try command.optionalText("keep").map { try RetentionPolicy($0) }
      let (drills, store) = try command.finish((command.flag("drill"), command.store))
      let identities = try command.secretKeys
      return try command.withFile { [options] in
        try await store.backUp($0, options, keeping: policy, drills: drills, with: identities).json
      }
    },
    "history": { command in
      let (store, home) = (try command.finish(command.store), command.home)
      // A protected identity without its passphrase leaves notes closed.
      let isClosed = try home.passphrase == nil && home.isIdentityProtected() == true
      let identities = try isClosed ? [] : command.secretKeys
      return try command.wait {
        let (points, unreadable) = try await store.history(home: home, with: identities)
        return BackupStore.json(of: points, unreadable: unreadable)
      }
    },
    "restore": { command in
      let selection = try command.optionalText("at").map { try PointSelection(text: $0) } ?? .newest
      let (store, history) = (try command.store, try command.optionalText("history"))
      let identities = try command.secretKeys
      if let path = try command.finish(command.optionalText("output")) {
        return try command.wait {
          try await store.restore(to: path, at: selection, of: history, with: identities).json(restoredTo: path)
        }
      }
      return try command.withFile {
        try await store.restore(into: $0, at: selection, of: history, with: identities).json(restoredTo: $0.path)
      }
    },
    "restore rows": { command in
      let selection = try command.optionalText("at").map { try PointSelection(text: $0) } ?? .newest
      let (store, history) = (try command.store, try command.optionalText("history"))
      let scope = try ShareScope(json: command.object("scope").lineText())
      var options = ApplyOptions(isDryRun: try command.flag("dryRun"))
      options.conflicts = ConflictPolicies(
        try command.optionalText("onConflict").map { try Command.policy(.string($0)) } ?? .takeIncoming)
      let deletesNewer = try command.finish(command.flag("deleteNewer"))
      let identities = try command.secretKeys
      return try command.withFile { [options] in
        let (point, report, missing) = try await store.restoreRows(
          of: scope, into: $0, at: selection, of: history, with: identities, deletesNewer: deletesNewer,
          options: options)
        return point.json(restoredTo: $0.path, rows: report, missingColumns: missing)
      }
    },
    "prune": { command in
      let policy = try RetentionPolicy(command.text("keep"))
      let (store, history) = (try command.store, try command.optionalText("history"))
      let (recipients, home) = (try command.recipients() ?? [], command.home)
      let isDryRun = try command.finish(command.flag("dryRun"))
      let identities = try command.secretKeys
      return try command.wait {
        try await store.prune(
          keeping: policy, of: history, home: home, with: identities, for: recipients, isDryRun: isDryRun
        ).json(isDryRun: isDryRun)
      }
    },
    "prune undo": { command in
      let store = try command.finish(command.store)
      return try command.wait { ["version": 1, "points": .array(try await store.restorePruned().map(\.json))] }
    },
    "verify store": { command in
      let (store, home) = (try command.finish(command.store), command.home)
      let identities = try command.secretKeys
      return try command.wait { try await store.verify(home: home, with: identities).json }
    },
  ]

  private var store: BackupStore { get throws { BackupStore(folder: try text("store")) } }

  private var secretKeys: [AgeIdentity] { get throws { try home.secretKeys(and: options.identityFiles) } }

  private func wait(_ work: @escaping @Sendable () async throws -> JSONValue) throws -> JSONValue {
    let watch = options.watch
    try watch.poll()
    return try waitForTask(work) { try watch.poll() }
  }

  /// Works on the database, which must be a file: another thread opens it.
  private func withFile(
    _ work: @escaping @Sendable (DatabaseManager) async throws -> JSONValue
  ) throws -> JSONValue {
    // The progress is told by the waiting thread.
    try with(watched: false) { manager in
      guard !manager.isBorrowed else {
        throw Arguments.misuse("the database is a connection of the app; open it by its path for this")
      }
      return try wait { try await work(manager) }
    }
  }
}
