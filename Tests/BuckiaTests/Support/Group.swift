import Buckia
import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import TestSupport

/// Several people who edit the same rows independently, and send their changes to all others.
struct Group {
  /// A member of the group.
  struct Member {
    let database: DatabaseManager
    let shared: String
    /// The files that have not been applied here yet.
    var mail: [String] = []
  }

  let folder: TemporaryFolder
  var members: [Member] = []
  /// All files that were sent.
  var sent: [(file: String, from: Int)] = []
  var options = ApplyOptions(conflicts: .latest)

  /// - Parameters:
  ///   - count: The number of members.
  ///   - schema: The statements that make the database with which all begin.
  ///   - ordersIDs: True if each diff has a greater id than all before it. Otherwise, ids of one second have no order.
  init(_ count: Int, _ schema: String, ordersIDs: Bool = true) throws {
    folder = try TemporaryFolder()
    try TestDatabases.run(schema, on: folder.file("base.sqlite"))
    for index in 0..<count {
      let database = DatabaseManager(
        try folder.copy("base.sqlite", to: "\(index).sqlite"),
        home: BuckiaHome(path: folder.file(ordersIDs ? "home" : "\(index)-home")))
      try database.initialize()
      try database.keepClocks()
      members.append(Member(database: database, shared: folder.file("\(index)-shared.sqlite")))
      try database.snapshot(to: members[index].shared)
    }
  }

  func edit(_ member: Int, _ sql: String) throws { try TestDatabases.run(sql, on: members[member].database.path) }

  /// Sends the changes of a member to all others.
  @discardableResult
  mutating func send(_ member: Int) throws -> DiffReport {
    let report = try members[member].database.createDatabaseDiff(
      since: members[member].shared, output: .folder(folder.file("sent")))
    if let file = report.path {
      sent.append((file, member))
      for other in members.indices where other != member { members[other].mail.append(file) }
    }
    return report
  }

  /// Applies some of the files that a member has received, or all of them.
  @discardableResult
  mutating func apply(_ member: Int, _ files: [String]? = nil) throws -> ApplyReport {
    let files = files ?? members[member].mail
    var options = options
    options.snapshot = members[member].shared
    members[member].mail.removeAll { files.contains($0) }
    return try members[member].database.processInboundChanges(files, options: options)
  }

  /// Sends and applies until nothing is left to send.
  mutating func settle() throws {
    var isSettled = false
    while !isSettled {
      isSettled = true
      for member in members.indices {
        if try send(member).id != nil { isSettled = false }
        try apply(member)
      }
    }
  }

  /// The rows of a member, without Buckia's tables.
  func content(_ member: Int) throws -> [String: [String]] {
    try TestDatabases.content(of: members[member].database.path).filter { !$0.key.hasPrefix("buckia_") }
  }

  /// The rows of a query on a member's database.
  func rows(_ member: Int, _ sql: String) throws -> [String] {
    try TestDatabases.texts(sql, on: members[member].database.path)
  }

  /// A value of a member's database.
  func value(_ member: Int, _ sql: String) throws -> ChangesetValue {
    let connection = try SQLiteConnection(opening: members[member].database.path, as: .readOnly)
    let query = try connection.prepare(sql)
    guard try query.step() else { return .null }
    return switch query.storageClass(at: 0) {
    case .integer: .integer(query.integer(at: 0))
    case .blob: .blob(query.blob(at: 0))
    default: .text(query.text(at: 0) ?? "")
    }
  }
}
