import BuckiaBytes
import ArgumentParser
import Buckia
import BuckiaBackup
import BuckiaBenchmarks
import BuckiaStorage
import Foundation

/// Does one thing with Buckia and prints the peak resident memory of this process, in bytes.
///
/// The memory comparisons run it as a process of its own: a peak never falls, so earlier work would hide a lower one.
struct MemoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "memory", abstract: "Prints the peak memory of one piece of work.", shouldDisplay: false,
    subcommands: [Apply.self, Exchange.self, Diff.self, Encrypt.self, Decrypt.self, Backup.self])

  /// Applies one file.
  struct Apply: ParsableCommand {
    @Argument var database: String
    @Argument var file: String

    func run() throws {
      try EngineCalls.apply(inbound: file, to: database)
      print(peakResidentBytes)
    }
  }

  /// Does something with rows that somebody else has sent.
  struct Exchange: ParsableCommand {
    @Argument var work: ExchangeWork
    @Argument var database: String
    @Argument var file: String
    @Argument var home: String

    func run() throws {
      try work.run(on: database, file, home: home)
      print(peakResidentBytes)
    }
  }

  /// Writes the difference of two databases into a diff file.
  struct Diff: ParsableCommand {
    @Argument var older: String
    @Argument var newer: String
    @Argument var file: String
    @Argument var home: String

    func run() throws {
      try EngineCalls.diff(from: older, to: newer, file: file, home: home)
      print(peakResidentBytes)
    }
  }

  /// Encrypts a file.
  struct Encrypt: ParsableCommand {
    @Argument var file: String
    @Argument var target: String
    @Argument var recipient: String

    func run() throws {
      try FileEncryption(to: [AgeRecipient(recipient)]).encrypt(file, to: target)
      print(peakResidentBytes)
    }
  }

  /// Decrypts a file.
  struct Decrypt: ParsableCommand {
    @Argument var file: String
    @Argument var target: String
    @Argument var identityFile: String

    func run() throws {
      try FileDecryption(identities: AgeIdentity.identities(inFile: identityFile)).decrypt(file, to: target)
      print(peakResidentBytes)
    }
  }

  /// Does something with a store of backups.
  struct Backup: ParsableCommand {
    @Argument var step: String
    @Argument var database: String
    @Argument var store: String
    @Argument var home: String
    @Argument var target: String

    func run() throws {
      let home = BuckiaHome(path: home)
      let (step, target, store) = (step, target, BackupStore(folder: store))
      let database = DatabaseManager(database, home: home)
      try waitForTask {
        switch step {
        case "restore": _ = try await store.restore(to: target)
        case "verify": _ = try await store.verify(home: home)
        case "prune": _ = try await store.prune(keeping: RetentionPolicy("last=1"), home: home)
        default: _ = try await store.backUp(database)
        }
      }
      print(MemoryCommand.peakResidentBytes)
    }
  }

  /// Runs a subcommand in a child process.
  ///
  /// - Returns: The child's peak resident memory, in bytes.
  static func peak(_ arguments: String...) throws -> Double {
    let peak = try ChildProcess.numbers(1, of: ["memory"] + arguments)[0]
    guard peak > 0 else { throw BuckiaError(.otherProgram, "the system does not tell how much memory a process took") }
    return Double(peak)
  }

  /// The peak resident memory of this process, mapped files included.
  ///
  /// On Linux `ru_maxrss` is inherited through `exec`, so it may be the peak of the parent. `VmHWM` starts again with the
  /// program (proc(5)).
  static var peakResidentBytes: Int {
    #if canImport(Darwin)
      var usage = rusage()
      getrusage(RUSAGE_SELF, &usage)
      return usage.ru_maxrss
    #else
      let status = FileManager.default.contents(atPath: "/proc/self/status") ?? Data()
      for line in String(decoding: status, as: UTF8.self).split(separator: "\n") where line.hasPrefix("VmHWM:") {
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) << 10
      }
      return 0
    #endif
  }
}
