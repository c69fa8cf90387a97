import ArgumentParser
import Buckia

/// `buckia serve`
struct ServeCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Shows a database's conflicts and inbound files in a browser, and lets a person settle them there.",
    discussion: """
      It prints an address, and hands pages out until it is interrupted: where the database stands, its conflicts, and \
      what lies in the inbound folders. On the pages, conflicts are decided as by `buckia resolve`, and files applied \
      as by `buckia apply`. Only this computer can connect, and only with the address, which is \
      another one each time.

      Example:
        buckia serve notes.sqlite --inbound inbound
      """)

  @OptionGroup var target: DatabaseOptions

  @Option(help: ArgumentHelp("An inbound folder. May be given several times.", valueName: "folder"))
  var inbound: [String] = []

  @Option(help: ArgumentHelp("The port; 0 for any that is free.", valueName: "number"))
  var port = 0

  @Flag(help: "Read-only: the pages change nothing.")
  var readOnly = false

  @OptionGroup var conflicts: ConflictOptions

  @Flag(help: "Leave applied files in their folders.")
  var keep = false

  @Option(
    help: ArgumentHelp(
      "Write the state of the database that your recipients have after files were applied: the OLD of your next diff.",
      valueName: "file"))
  var snapshot: String?

  @Option(
    help: ArgumentHelp("Who decides, for the record. Your account's name by default.", valueName: "name"))
  var by: String?

  @OptionGroup var decryption: DecryptionOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (0...65_535).contains(port) else { throw ValidationError("--port takes 1 to 65535, or 0 for any free one.") }
    try decryption.validate(besides: [])
  }

  func perform(on console: Console) throws -> ExitStatus {
    let database = try servedDatabase()
    // A database that cannot be shown is an error here, and not in the browser.
    _ = try database.manager.status()
    for folder in database.folders { _ = try folder.files() }
    let routes = SiteRoutes(database)
    let server = try PageServer(port: port, token: database.token) { routes.answer($0) }
    if console.isJSON {
      try console.document(["version": 1, "url": .string(server.address), "port": .number(server.port)])
    } else {
      // The address is the result: printed even if quiet, since the command is useless without it.
      try console.write("\(server.address)\n")
    }
    try console.flush()
    console.note("Open this address in a browser on this computer. Control-C ends the command.")
    try server.waitUntilClosed()
    return .done
  }

  private func servedDatabase() throws -> ServedDatabase {
    var options = ApplyOptions(keepsFiles: keep)
    conflicts.choose(for: &options)
    options.decryption = try decryption.decryption(in: home)
    options.snapshot = snapshot
    let folder = home.folder
    // Files can be encrypted for this person. The passphrase is asked for now, since the terminal is out of sight once
    // the browser is open.
    if !inbound.isEmpty, try folder.isIdentityProtected() == true { _ = try folder.identity() }
    return ServedDatabase(
      manager: target.manager(home: folder), name: target.database,
      folders: inbound.map { InboundFolder(path: $0) }, options: options, decidedBy: by ?? ResolveCommand.account,
      isReadOnly: readOnly, limits: output.full ? .full : .standard)
  }
}
