import BuckiaBytes
import Buckia
import BuckiaBenchmarks
import Foundation
import SQLiteConnections

extension ImplementationName {
  fileprivate static let round: ImplementationName = "Buckia, a round of sync"
  fileprivate static let download: ImplementationName = "Buckia, downloading all"
  fileprivate static let rclone: ImplementationName = "rclone copy"
  fileprivate static let rcloneSynced: ImplementationName = "rclone copy, then sync"
  fileprivate static let idle: ImplementationName = "a round with nothing to do"
  fileprivate static let media: ImplementationName = "ten new media files"
  fileprivate static let changed: ImplementationName = "a row has changed, with backup"
}

/// Files that go to a server and back.
struct TransferredFiles {
  /// Which kind.
  enum Kind: String, CaseIterable {
    case small, large
  }

  let kind: Kind
  let count: Int
  /// The size of each in bytes.
  let bytes: Int

  /// At full size 10,000 files of 4 KiB, or one of 1 GiB.
  init(_ kind: Kind, rows: Int) {
    self.kind = kind
    switch kind {
    case .small: (count, bytes) = (rows / 100, 4 << 10)
    case .large: (count, bytes) = (1, rows * 1_073)
    }
  }

  var title: String {
    count == 1 ? "a file of \(Quantity.size(bytes))" : "\(Quantity.grouped(count)) files of \(Quantity.size(bytes))"
  }

  /// Makes a folder with the files.
  func makeFolder(in folder: ScratchFolder) throws -> String {
    let source = try folder.newFolder()
    try write(to: source)
    sync()
    return source
  }

  /// Makes a person with a database and the files of a folder as media.
  static func makePerson(with source: String, in folder: ScratchFolder) throws -> String {
    let person = folder.newFile(".person")
    let media = media(of: person)
    try FileManager.default.createDirectory(atPath: media, withIntermediateDirectories: true)
    for name in try FileManager.default.contentsOfDirectory(atPath: source) {
      try FileManager.default.linkItem(atPath: "\(source)/\(name)", toPath: "\(media)/\(name)")
    }
    let connection = try SQLiteConnection(opening: "\(person)/notes.sqlite", as: .create)
    try connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)")
    return person
  }

  static func media(of person: String) -> String { "\(person)/files/\(TransferCommand.user)/originals" }

  /// Contents that do not repeat, and differ from file to file.
  private func write(to folder: String) throws {
    var random = SeededGenerator(seed: 15)
    let piece = min(bytes, 1 << 20)
    for number in 0..<count {
      let path = "\(folder)/\(number).bin"
      guard FileManager.default.createFile(atPath: path, contents: nil), let file = FileHandle(forWritingAtPath: path)
      else { throw CocoaError(.fileWriteUnknown) }
      var left = bytes
      while left > 0 {
        let words = (0..<(min(piece, left) + 7) / 8).map { _ in random.next() }
        try file.write(contentsOf: words.withUnsafeBytes { Data($0.prefix(min(piece, left))) })
        left -= min(piece, left)
      }
      try file.close()
    }
  }
}

extension Comparison {
  /// Files from this machine to a WebDAV server, compared with `rclone`.
  static func uploading(_ kind: TransferredFiles.Kind, rows: Int) -> Comparison {
    let files = TransferredFiles(kind, rows: rows)
    return Comparison(
      id: "upload-\(kind.rawValue)", title: "Uploading \(files.title), WebDAV, whole programs",
      figures: [Figure(.speed, of: .round, against: .rclone, target: 1)]
    ) { folder in
      try folder.requireRoom(bytes: 4 * files.count * files.bytes)
      let server = try WebDAVServer()
      let rclone = try Rclone()
      let source = try files.makeFolder(in: folder)
      return Workload(
        size: files.title, notes: [rclone.version],
        implementations: [
          Implementation(.round, isSubject: true) { folder in
            let person = try TransferredFiles.makePerson(with: source, in: folder)
            let target = "\(server.address)/\(UUID().uuidString)"
            return ClosureRun(content: { try content(of: target) }) {
              _ = try TransferOutcome(of: "sync", person, target)
              return nil
            }
          },
          Implementation(.rclone) { _ in
            let name = UUID().uuidString
            return ClosureRun(content: { try content(of: "\(server.address)/\(name)") }) {
              // rclone makes no folder around that of the address.
              try rclone.copy(source, to: ":webdav:\(name)/\(TransferCommand.user)/originals", server.address)
              return nil
            }
          },
        ])
    }
  }

  /// Files from a WebDAV server to this machine, compared with `rclone`.
  static func downloading(_ kind: TransferredFiles.Kind, rows: Int) -> Comparison {
    let files = TransferredFiles(kind, rows: rows)
    return Comparison(
      id: "download-\(kind.rawValue)", title: "Downloading \(files.title), WebDAV, whole programs",
      figures: [
        Figure(.speed, of: .download, against: .rcloneSynced, target: 1),
        Figure(.speed, of: .download, against: .rclone),
      ]
    ) { folder in
      try folder.requireRoom(bytes: 4 * files.count * files.bytes)
      let server = try WebDAVServer()
      let rclone = try Rclone()
      guard let sync = ChildProcess.find("sync") else { throw BuckiaError(.otherProgram, "there is no sync") }
      func copying(_ name: ImplementationName, then finish: @escaping (String) throws -> Void) -> Implementation {
        Implementation(name) { folder in
          let target = try folder.newFolder()
          return ClosureRun(content: { try content(ofFolder: target) }) {
            try rclone.copy(":webdav:\(TransferCommand.user)/originals", to: target, server.address)
            try finish(target)
            return nil
          }
        }
      }
      let source = try files.makeFolder(in: folder)
      _ = try TransferOutcome(
        of: "sync", TransferredFiles.makePerson(with: source, in: folder), server.address)
      return Workload(
        size: files.title, notes: [rclone.version],
        implementations: [
          Implementation(.download, isSubject: true) { folder in
            let target = try folder.newFolder()
            return ClosureRun(content: { try content(ofFolder: target) }) {
              _ = try TransferOutcome(of: "download", server.address, target)
              return nil
            }
          },
          // Buckia lets a file appear when it is safely on disk; rclone leaves that to the system.
          copying(.rcloneSynced) { try ChildProcess(sync, ["-f", $0]).run() },
          copying(.rclone) { _ in },
        ])
    }
  }

  /// The peak resident memory of both ways.
  static func memoryOfTransfers(_ kind: TransferredFiles.Kind, rows: Int) -> Comparison {
    let files = TransferredFiles(kind, rows: rows)
    return Comparison(
      id: "memory-transfer-\(kind.rawValue)", title: "Peak memory, \(files.title) up and down, WebDAV", unit: .bytes,
      figures: [ImplementationName.round, .download].map {
        Figure(.value, of: $0, against: nil, target: Double(64 << 20))
      }
    ) { folder in
      try folder.requireRoom(bytes: 4 * files.count * files.bytes)
      let server = try WebDAVServer()
      let source = try files.makeFolder(in: folder)
      _ = try TransferOutcome(
        of: "sync", TransferredFiles.makePerson(with: source, in: folder), server.address)
      return Workload(
        size: files.title,
        implementations: [
          Implementation(.round, isSubject: true) { folder in
            let person = try TransferredFiles.makePerson(with: source, in: folder)
            return ClosureRun {
              Double(
                try TransferOutcome(of: "sync", person, "\(server.address)/\(UUID().uuidString)").peakBytes)
            }
          },
          Implementation(.download, isSubject: true) { folder in
            let target = try folder.newFolder()
            return ClosureRun { Double(try TransferOutcome(of: "download", server.address, target).peakBytes) }
          },
        ])
    }
  }

  /// How many requests a round sends.
  static func requestsOfRounds() -> Comparison {
    Comparison(
      id: "requests", title: "Requests of a round of sync, WebDAV", unit: .count,
      figures: [Figure(.value, of: .idle, against: nil, target: 1)]
    ) { folder in
      let server = try WebDAVServer()
      let files = TransferredFiles(.small, rows: 1_000)
      let source = try files.makeFolder(in: folder)
      /// Does something behind a first round, and counts the requests of the next.
      func after(
        _ name: ImplementationName, isSubject: Bool = false, _ change: @escaping (String) throws -> Void
      ) -> Implementation {
        Implementation(name, isSubject: isSubject) { folder in
          let person = try TransferredFiles.makePerson(with: source, in: folder)
          let target = "\(server.address)/\(UUID().uuidString)"
          _ = try TransferOutcome(of: "sync", person, target, "--backup")
          try change(person)
          return ClosureRun { Double(try TransferOutcome(of: "sync", person, target, "--backup").requests) }
        }
      }
      return Workload(
        size: "\(files.title), and a database",
        implementations: [
          after(.idle, isSubject: true) { _ in },
          after(.media) { person in
            for number in 0..<10 {
              try Data("new \(number)".utf8).write(
                to: URL(fileURLWithPath: "\(TransferredFiles.media(of: person))/new \(number).bin"))
            }
          },
          after(.changed) { person in
            try SQLiteConnection(opening: "\(person)/notes.sqlite", as: .readWrite).execute(
              "INSERT INTO note(text) VALUES ('new')")
          },
        ])
    }
  }

  /// A number that says how many files there are, of how many bytes.
  private static func content(of address: String) throws -> UInt64 {
    hash(try ChildProcess.numbers(2, of: ["transfer", "list", address]).map { UInt64($0) })
  }

  /// The same of a folder of this machine.
  private static func content(ofFolder path: String) throws -> UInt64 {
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    let bytes = try names.reduce(UInt64(0)) { sum, name in
      let size = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")[.size] as? NSNumber
      return sum + (size?.uint64Value ?? 0)
    }
    return hash([UInt64(names.count), bytes])
  }

  private static func hash(_ numbers: [UInt64]) -> UInt64 {
    numbers.reduce(0) { ($0 ^ $1) &* 0xff51_afd7_ed55_8ccd }
  }
}

/// Debian's `rclone`.
private struct Rclone {
  let version: String
  private let program: String

  init() throws {
    guard let program = ChildProcess.find("rclone") else {
      throw BuckiaError(.otherProgram, "there is no rclone (Debian's package is rclone)")
    }
    self.program = program
    version = String(try ChildProcess(program, ["version"]).run().prefix { $0 != "\n" })
  }

  /// Copies a folder, with rclone's own settings.
  func copy(_ source: String, to target: String, _ address: String) throws {
    try ChildProcess(
      program, ["copy", source, target, "--webdav-url", address, "--webdav-vendor", "other", "--config", "/dev/null"]
    ).run()
  }
}

extension ScratchFolder {
  fileprivate func newFolder() throws -> String {
    let path = newFile(".folder")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    return path
  }
}
