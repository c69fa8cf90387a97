import Buckia
import BuckiaBytes
import NIOConcurrencyHelpers

/// Maps addresses to pages and actions.
struct SiteRoutes: Sendable {
  private let database: ServedDatabase
  /// The files of the database at the last read, and a hash of its ledger's state then.
  private let seen = NIOLockedValueBox<(files: [FileIdentity?], ledger: Int)>(([], 0))
  /// The results of actions, by number. A browser is redirected to a page whose address has the number, and that page
  /// shows the result.
  private let messages = NIOLockedValueBox<(newest: Int, kept: [Int: PageMessage])>((0, [:]))

  /// The number of kept messages: a browser requests one at once.
  private static let messageLimit = 100

  init(_ database: ServedDatabase) { self.database = database }

  /// Answers a request.
  func answer(_ request: PageRequest) -> PageResponse {
    do {
      return request.method == .post ? try act(request) : try show(request)
    } catch {
      let report = ErrorReport(error)
      return failure(report, report.code == BuckiaErrorCode.noSuchConflict.rawValue ? .notFound : .failed)
    }
  }

  // MARK: Pages

  private func show(_ request: PageRequest) throws -> PageResponse {
    if request.path == ["state"] { return state(request) }
    // What changes while the page is made is noticed afterwards.
    let site = try site(for: request)
    switch request.path {
    case []:
      return try page { try OverviewPage(database: database, site: site).write(on: $0) }
    case ["inbox"]:
      return try page { try InboxPage(database: database, site: site).write(on: $0) }
    case ["file"]:
      guard let (file, address) = file(in: request) else { return notFound }
      return try page { try showChanges(in: file, address, site, on: $0) }
    case ["conflicts"]:
      guard let query = ConflictQuery(request.query) else { return notFound }
      return try page {
        try ConflictListing(database: database, site: site, query: query).write(on: $0)
      }
    default:
      guard let number = conflict(in: request) else { return notFound }
      return try page {
        try database.writeConflict(number, site, on: $0)
      }
    }
  }

  private func showChanges(
    in file: InboundFolder.File, _ address: String, _ site: PageSite, on page: PageWriter
  ) throws {
    let inspected = try DiffInspection.open(
      .path(file.path), home: database.manager.home, decryption: database.options.decryption)
    let changes = ChangesPage(of: inspected, name: file.path, limits: database.limits, on: page)
    changes.site = site
    if !database.isReadOnly { changes.introduction = InboxPage.form(address, file) }
    _ = try changes.write()
  }

  /// The conflict that an address is about.
  private func conflict(in request: PageRequest) -> Int64? {
    guard request.path.count == 2, request.path[0] == "conflicts" else { return nil }
    return Int64(request.path[1])
  }

  /// The file of an address, and the target of the form for its actions.
  private func file(in request: PageRequest) -> (file: InboundFolder.File, address: String)? {
    guard let folder = folder(in: request), let file = folder.file(named: request.query["name"] ?? "") else {
      return nil
    }
    let fields = [(name: "folder", value: request.query["folder"] ?? ""), (name: "name", value: file.name)]
    return (file, database.address("inbox", fields))
  }

  private func folder(in request: PageRequest) -> InboundFolder? {
    guard let place = request.query["folder"].flatMap({ Int($0) }), database.folders.indices.contains(place) else {
      return nil
    }
    return database.folders[place]
  }

  private func page(
    _ status: PageResponse.Status = .ok, _ body: (PageWriter) throws -> Void
  ) throws -> PageResponse {
    var bytes: [UInt8] = []
    _ = try PageTarget.stream { bytes.append(contentsOf: $0) }.write(body)
    return PageResponse(status, mediaType: "text/html; charset=utf-8", policy: PageSite.policy, body: bytes)
  }

  private func site(for request: PageRequest) throws -> PageSite {
    let number = request.query["told"].flatMap { Int($0) }
    let message = number.flatMap { number in messages.withLockedValue { $0.kept[number] } }
    return site(at: request.path.first, message: message, version: try version())
  }

  private func site(at part: String?, message: PageMessage?, version: String) -> PageSite {
    let links = [("Overview", nil), ("Conflicts", "conflicts"), ("Inbox", "inbox")] as [(String, String?)]
    return PageSite(
      pages: links.map { name, path in
        let isCurrent = path == part || path == "inbox" && part == "file"
        return (name, database.address(path ?? ""), isCurrent)
      }, message: message, statePath: database.address("state"), version: version)
  }

  // MARK: What is not there, or fails

  private var notFound: PageResponse {
    failure(ErrorReport(code: "not-found", message: "There is no such page, or no such file any more."), .notFound)
  }

  /// A page with the error, and links to all other pages.
  private func failure(_ report: ErrorReport, _ status: PageResponse.Status) -> PageResponse {
    var frame = PageFrame(
      title: status == .notFound ? "Not there" : "This did not work", facts: [("database", database.name)],
      noun: "files")
    frame.site = site(at: "", message: PageMessage(.bad, [report.message]), version: "")
    do {
      return try page(report.status == .busy ? .unavailable : status) { page in
        try frame.write(on: page) { try page.write("<p>Nothing was changed.</p>\n") }
      }
    } catch {
      return .text(.failed, report.message)
    }
  }

  /// The version of everything, which the script of each page asks for.
  private func state(_ request: PageRequest) -> PageResponse {
    do {
      let version = try self.version()
      let tag = "\"\(version)\""
      guard request.knownVersion != tag else { return PageResponse(.notModified, headers: [("ETag", tag)]) }
      return PageResponse(.ok, headers: [("ETag", tag)], body: Array(version.utf8))
    } catch {
      // The browser keeps the page until this has finished.
      return .text(.unavailable, ErrorReport(error).message)
    }
  }

  // MARK: Actions

  private func act(_ request: PageRequest) throws -> PageResponse {
    guard !database.isReadOnly else {
      return failure(
        ErrorReport(code: "read-only", message: "Nothing can be changed here: the command runs with --read-only."),
        .forbidden)
    }
    switch request.path {
    case ["inbox"]:
      return tell(database.settle(folder(in: request), request.query["name"], request.form["do"]), at: "inbox")
    case ["undo"]:
      guard let diff = request.query["diff"] else { return notFound }
      return tell(undo(diff), at: "")
    case ["conflicts"]:
      guard let query = ConflictQuery(request.query) else { return notFound }
      return tell(database.resolveAll(query, request.form), at: "conflicts", query.fields)
    default:
      guard let number = conflict(in: request), let query = ConflictQuery(request.query) else { return notFound }
      let outcome = database.resolve(number, request.form)
      // What stays open is looked at again by itself.
      return outcome.tone == .good
        ? tell(outcome, at: "conflicts", query.fields) : tell(outcome, at: "conflicts/\(number)")
    }
  }

  /// Undoes a diff.
  private func undo(_ diff: String) -> PageMessage {
    .telling {
      let report = try database.manager.undo([.diff(diff)])
      let lines = report.lines(database: database.name, style: Style(isColored: false, width: .max))
      let conflicts = report.undone.contains { $0.conflicts > 0 }
      return PageMessage(
        .good, lines, link: conflicts ? (name: "Look at the conflicts", path: database.address("conflicts")) : nil)
    }
  }

  /// Redirects the browser to a page with the result.
  private func tell(
    _ message: PageMessage, at path: String, _ fields: [(name: String, value: String)] = []
  ) -> PageResponse {
    let number = messages.withLockedValue { messages in
      messages.newest += 1
      messages.kept[messages.newest] = message
      messages.kept[messages.newest - Self.messageLimit] = nil
      return messages.newest
    }
    return .redirect(to: database.address(path, fields + [("told", String(number))]))
  }
}

// True if the shown state has changed: the ledger, the conflicts, or the inbound folders.
extension SiteRoutes {
  /// The version: the same text as long as nothing has changed.
  ///
  /// It is requested every few seconds. The database is only read if its file has been written since.
  ///
  /// - Throws: `BuckiaError` when the database or a folder cannot be read.
  private func version() throws -> String {
    try seen.withLockedValue { seen in
      let now = ["", "-wal", "-journal"].map { FileIdentity.ofFile(at: database.manager.path + $0) }
      if now != seen.files { seen = (now, try ledgerHash()) }
      var hasher = Hasher()
      hasher.combine(seen.ledger)
      for folder in database.folders {
        for file in try folder.files() {
          hasher.combine(file.path)
          hasher.combine(file.identity)
        }
      }
      return String(UInt(bitPattern: hasher.finalize()), radix: 36)
    }
  }

  private func ledgerHash() throws -> Int {
    let status = try database.manager.status()
    var hasher = Hasher()
    for count in [status.conflicts, status.openConflicts] { hasher.combine(count) }
    if let counts = status.ledger {
      for count in [counts.applied, counts.held, counts.waiting, counts.quarantined, counts.rejected] {
        hasher.combine(count)
      }
    }
    // A conflict that is decided again changes no count.
    hasher.combine(try database.manager.newestResolution())
    hasher.combine(status.recordedAt)
    hasher.combine(status.trust?.rawValue)
    return hasher.finalize()
  }
}
