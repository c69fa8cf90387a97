import Buckia
import CBuckia

@c @implementation
package func buckia_call(
  _ database: OpaquePointer?, _ command: CString, _ arguments: CString,
  _ options: UnsafePointer<buckia_file_options>?, _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  call(error, json) {
    let name = try Arguments.text(command, "command")
    guard let run = Command.all[name] else {
      throw Arguments.misuse(
        "there is no command \(name); there are \(Command.all.keys.sorted().joined(separator: ", "))")
    }
    let text = try Arguments.optionalText(arguments, "arguments") ?? "{}"
    let options = try FileOptions(options)
    try options.watch.check()
    let command = try Command(name, text, Handle.object(database, as: Database.self), options)
    return try run(command)
  }
}

/// A command of `buckia` with its arguments: a JSON object.
final class Command {
  private let name: String
  private var members: [String: JSONValue]
  private let database: Database?
  let options: FileOptions

  /// - Throws: `BuckiaError` with `misuse` when the arguments are no JSON object.
  init(_ name: String, _ arguments: String, _ database: Database?, _ options: FileOptions) throws {
    self.name = name
    self.database = database
    self.options = options
    do {
      guard case .object(let object) = try JSONParser.parse(Array(arguments.utf8), numbers: .all) else {
        throw Arguments.misuse("the arguments of \(name) are no JSON object")
      }
      members = Dictionary(object.members.map { ($0.name, $0.value) }) { first, _ in first }
    } catch let error as JSONError {
      throw Arguments.misuse("the arguments of \(name) are no JSON: \(error)")
    }
  }

  /// The commands by name. Each returns the document that the command line prints with `--json`.
  static let all = rest.merging(backups) { first, _ in first }

  private static let rest: [String: @Sendable (Command) throws -> JSONValue] = [
    "init": { command in
      let trust = try command.optionalText("trust").map { word in
        guard let mode = TrustMode(rawValue: word) else { throw command.wrong("trust", "any or known") }
        return mode
      }
      let dataset = try command.finish(command.optionalText("dataset"))
      let known = dataset.flatMap { Dataset($0) }
      guard dataset == nil || dataset == "new" || known != nil else {
        throw command.wrong("dataset", "new, or the id of a dataset: 32 hexadecimal digits")
      }
      return try command.with { manager in
        let report = try manager.initialize(trust: trust)
        if dataset != nil { _ = try known.map { try manager.joinDataset($0) } ?? manager.beginDataset() }
        return try report.json(dataset: manager.dataset())
      }
    },
    "identity new": { try $0.home.makeIdentity(named: $0.finish($0.text("name"))).json },
    "identity show": { try $0.finish($0.home.publicIdentity().json) },
    "identity rotate": { try $0.finish($0.home.rotateIdentity()).json },
    "contact list": { try $0.finish($0.home.contacts().json) },
    "contact add": { command in
      let (card, name) = try command.finish((command.text("card"), command.optionalText("name")))
      return try command.home.addContact(card, named: name).json
    },
    "contact trust": { command in
      let (name, text) = try command.finish((command.text("name"), command.text("fingerprint")))
      guard let fingerprint = Fingerprint(text) else { throw Arguments.misuse("\(text) is no fingerprint") }
      return ["version": 1, "contact": try command.home.trustContact(name, fingerprint: fingerprint).json]
    },
    "contact rename": { command in
      let (name, new) = try command.finish((command.text("name"), command.text("newName")))
      return ["version": 1, "contact": try command.home.renameContact(name, to: new).json]
    },
    "contact remove": {
      ["version": 1, "removed": try $0.home.removeContact($0.finish($0.text("name"))).json]
    },
    "invite": { command in
      let scope = try ShareScope(json: command.object("scope").lineText())
      var options = InvitationOptions()
      options.recipient = try command.optionalText("to")
      options.folder = try command.optionalText("folder")
      options.days = try command.number("expires") ?? options.days
      let made = try command.finish(options)
      return try command.with { try $0.invite(scope, options: made, as: $0.home.identity()).json(path: nil) }
    },
    "accept": { command in
      let invitation = try Invitation(command.text("invitation"))
      let (name, output, replaces) = try command.finish(
        (command.optionalText("name"), command.text("output"), command.flag("replace")))
      return try command.with {
        try $0.accept(
          invitation, named: name, answer: .path(output, replacing: replaces), as: $0.home.identity()
        ).json(of: invitation)
      }
    },
    "status": { command in
      let words = try command.finish(command.flag("words"))
      return try command.with { try $0.status(includesWords: words).json() }
    },
    "doctor": { command in
      try command.finish(()); return try command.with { try $0.examine().json }
    },
    "snapshot": { command in
      let path = try command.finish(command.text("path"))
      return try command.with {
        let report = try $0.snapshot(to: path)
        return report.json
      }
    },
    "clocks": { command in
      let tables = try command.finish(command.texts("tables"))
      return try command.with {
        ["version": 1, "clocks": .array(try $0.keepClocks(of: tables).map { .string($0) })]
      }
    },
    "merge": { command in
      var options = MergeOptions()
      if let word = try command.optionalText("onConflict") {
        options.conflicts = ConflictPolicies(try Command.policy(.string(word)))
      }
      for (table, word) in try command.members(of: "onConflictIn") {
        options.conflicts[.table(table)] = try Command.policy(word)
      }
      for (table, columns) in try command.members(of: "onConflictInColumns") {
        for (column, word) in try command.members(columns, "onConflictInColumns") {
          options.conflicts[.column(column, of: table)] = try Command.policy(word)
        }
      }
      for (table, names) in try command.members(of: "rename") {
        for (old, value) in try command.members(names, "rename") {
          guard case .string(let new) = value else {
            throw command.wrong("rename", "an object of tables and the new names of their columns")
          }
          options.renames.append(ColumnRename(table: TableName(table), from: old, to: new))
        }
      }
      options.replacesOutput = try command.flag("replace")
      options.allowsUnrelated = try command.flag("unrelated")
      options.isDryRun = try command.flag("dryRun")
      options.ignoredColumns = try command.columns("ignore")
      options.matches = try command.columns("match")
      let (other, base, output, made) = try command.finish(
        (command.text("theirs"), command.optionalText("base"), command.optionalText("output"), options))
      let watch = command.options.watch
      return try command.with {
        try $0.merge(other, since: base, into: output, options: made, progress: { try watch.tell($0) }).json
      }
    },
    "encrypt": { command in
      let recipients = try command.recipients()
      let passphrase = try command.optionalText("passphrase")
      guard (recipients == nil) != (passphrase == nil) else {
        throw Arguments.misuse("a file is encrypted for recipients (to) or with a passphrase")
      }
      var encryption =
        try recipients.map { try FileEncryption(to: $0) } ?? FileEncryption(passphrase: passphrase ?? "")
      encryption.isArmored = try command.flag("armor")
      let (path, output, replaces) = try command.finish(
        (command.text("path"), command.text("output"), command.flag("replace")))
      return Command.written(
        output, try encryption.encrypt(path, to: output, replacing: replaces, progress: command.tell(of: path)))
    },
    "decrypt": { command in
      let (path, output, replaces) = try command.finish(
        (command.text("path"), command.text("output"), command.flag("replace")))
      let own = try command.options.decryption == nil ? AgeIdentity.identities(of: command.home.identity()) : []
      let decryption = try command.options.decryption ?? FileDecryption(identities: own)
      return Command.written(
        output, try decryption.decrypt(path, to: output, replacing: replaces, progress: command.tell(of: path)))
    },
  ]

  /// A progress closure for a file that is read.
  private func tell(of path: String) -> (Int64) throws -> Void {
    { [watch = options.watch] in try watch.tell(path, bytes: $0) }
  }

  private static func written(_ path: String, _ bytes: Int64) -> JSONValue {
    ["version": 1, "path": .string(path), "bytes": .integer(bytes)]
  }

  // MARK: Arguments

  /// The home folder of the database, or else that of the options.
  var home: BuckiaHome { database?.home ?? options.home }

  func with(watched: Bool = true, _ body: (DatabaseManager) throws -> JSONValue) throws -> JSONValue {
    guard let database else { throw Arguments.misuse("database is NULL, and \(name) needs one") }
    return try database.with(watched ? options.watch : nil, body)
  }

  /// Checks that all arguments have been read: a misspelled one must not be ignored.
  func finish<Value>(_ value: Value) throws -> Value {
    guard let rest = members.keys.sorted().first else { return value }
    throw Arguments.misuse("\(name) has no argument \(rest)")
  }

  private func take(_ member: String) -> JSONValue? {
    guard let value = members.removeValue(forKey: member), value != .null else { return nil }
    return value
  }

  private func wrong(_ member: String, _ expected: String) -> BuckiaError {
    Arguments.misuse("the argument \(member) of \(name) has to be \(expected)")
  }

  func optionalText(_ member: String) throws -> String? {
    guard let value = take(member) else { return nil }
    guard case .string(let text) = value else { throw wrong(member, "text") }
    return text
  }

  func text(_ member: String) throws -> String {
    guard let text = try optionalText(member) else { throw wrong(member, "given") }
    return text
  }

  func flag(_ member: String) throws -> Bool {
    guard let value = take(member) else { return false }
    guard case .bool(let flag) = value else { throw wrong(member, "true or false") }
    return flag
  }

  private func number(_ member: String) throws -> Int? {
    guard let value = take(member) else { return nil }
    guard case .integer(let number) = value else { throw wrong(member, "an integer") }
    return Int(clamping: number)
  }

  /// The keys of the people in the argument `to`.
  func recipients() throws -> [AgeRecipient]? {
    let known = Recipients(in: home)
    return try texts("to").map { try $0.map { try known.key($0) } }
  }

  private func texts(_ member: String) throws -> [String]? {
    guard let value = take(member) else { return nil }
    guard case .array(let values) = value else { throw wrong(member, "a list of texts") }
    return try values.map { value in
      guard case .string(let text) = value else { throw wrong(member, "a list of texts") }
      return text
    }
  }

  /// A policy for databases, whose changes have no ids.
  static func policy(_ word: JSONValue) throws -> ConflictPolicy {
    guard case .string(let text) = word, let policy = ConflictPolicy(rawValue: text), policy != .latest else {
      throw Arguments.misuse(
        "\(word.lineText()) is no policy of a merge: there are keep-local, take-incoming and abort")
    }
    return policy
  }

  /// The members of an object; none if it is missing.
  private func members(of member: String) throws -> [(name: String, value: JSONValue)] {
    try take(member).map { try members($0, member) } ?? []
  }

  private func members(_ value: JSONValue, _ member: String) throws -> [(name: String, value: JSONValue)] {
    guard case .object(let object) = value else { throw wrong(member, "an object of tables") }
    return object.members.map { ($0.name, $0.value) }
  }

  /// Columns by table: an object of lists of texts.
  private func columns(_ member: String) throws -> [TableName: [String]] {
    try members(of: member).reduce(into: [:]) { columns, table in
      guard case .array(let names) = table.value else { throw wrong(member, "an object of tables and their columns") }
      columns[TableName(table.name), default: []] += try names.map { name in
        guard case .string(let text) = name else { throw wrong(member, "an object of tables and their columns") }
        return text
      }
    }
  }

  func object(_ member: String) throws -> JSONValue {
    guard let value = take(member), case .object = value else { throw wrong(member, "an object") }
    return value
  }
}
