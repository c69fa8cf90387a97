import Buckia
import BuckiaLedger
import BuckiaSharing
import SQLiteConnections
import TestSupport
import Testing

/// A person who shares parts of a database, with a home, and a folder that others write to.
final class SharingPerson {
  let name: String
  let path: String
  let home: BuckiaHome
  private let folder: TemporaryFolder

  init(_ name: String, in folder: TemporaryFolder, _ sql: String) throws {
    self.name = name
    self.folder = folder
    path = try TestDatabases.run(sql, on: folder.file("\(name).sqlite"))
    home = BuckiaHome(path: folder.file("home of \(name)"))
    try folder.makeFolder("for \(name)")
  }

  func run(_ sql: String) throws { try TestDatabases.run(sql, on: path) }

  @discardableResult
  func share(
    _ scope: ShareScope, with other: SharingPerson, _ change: (inout ShareOptions) -> Void = { _ in }
  ) throws -> ShareReport {
    var options = ShareOptions()
    options.isUnencrypted = true
    change(&options)
    return try DatabaseManager(path, home: home).share(
      scope, to: [ShareRecipient(other.name)], output: .folder(folder.file("for \(other.name)")), options: options)
  }

  /// Applies the files that have arrived.
  @discardableResult
  func receive(_ options: ApplyOptions = ApplyOptions()) throws -> ApplyReport {
    let report = try DatabaseManager(path, home: home).processInboundChanges(
      [folder.file("for \(name)")], options: options)
    #expect(
      report.diffs.allSatisfy { $0.state == .applied || $0.state == .alreadyApplied },
      "\(report.diffs.map { $0.reason ?? "" })")
    return report
  }

  func rows(_ query: String) throws -> [String] { try TestDatabases.texts(query, on: path) }

  /// The tables whose state digests differ from those of their rows.
  func alteredStates() throws -> [String] {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    return try StateEntry.altered(on: connection).map { "\($0.owner) \($0.table.text)" }
  }
}

extension ApplyReport {
  /// The tables in which a sender has other rows, and the number of buckets that differ.
  var differences: [[String]] { diffs.flatMap(\.warnings).differences }
}

extension [Warning] {
  /// The tables in which a sender has other rows, and the number of buckets that differ.
  var differences: [[String]] { filter { $0.code == .stateDiffers }.map { [String]($0.arguments.prefix(2)) } }
}
