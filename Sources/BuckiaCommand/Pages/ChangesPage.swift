import Buckia

/// The page of the changes in a file, written while they are read.
final class ChangesPage {
  private let file: InspectedFile
  private let name: String
  private let limits: PageLimits
  private let page: PageWriter
  private var values: PageValues
  private var counts = PageCounts(noun: "change")

  /// The additions for a page of a server.
  var site: PageSite?
  /// The content before the changes.
  var introduction: Markup = ""

  /// How far a table is written.
  private struct Progress {
    var shown = 0
    /// True if it has a section.
    var isBegun = false
    /// True if the page already states that it lacks some of its changes.
    var isCut = false
  }
  /// By the places that tables have in the file's summary.
  private var progress: [Progress]
  private let places: [TableName: Int]

  /// The table of the change before.
  private var table: (name: String, place: Int)?
  /// The section that is being written: that of this table.
  private var list: EntryList?

  private static let versions = ["Before", "After"]

  /// - Parameters:
  ///   - file: The file.
  ///   - name: The file, for people.
  ///   - limits: How much is drawn.
  ///   - page: The output.
  init(of file: InspectedFile, name: String, limits: PageLimits, on page: PageWriter) {
    self.file = file
    self.name = name
    self.limits = limits
    self.page = page
    values = PageValues(limits: limits)
    let tables = file.summary.tables
    progress = Array(repeating: Progress(), count: tables.count)
    places = Dictionary(
      tables.enumerated().map { (TableName($1.table.name), $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Writes the page.
  ///
  /// - Returns: The number of changes on it.
  func write() throws -> PageCounts {
    var frame = frame
    frame.site = site
    try frame.write(on: page) {
      try page.write(introduction)
      if file.summary.changeCount == 0 { try page.write("<p>No changes.</p>\n") }
      try file.forEachChange { try add($0) }
      try endList()
      try writeStatements()
    }
    counts.left = file.summary.changeCount - counts.shown
    return counts
  }

  private var frame: PageFrame {
    let tables = file.summary.tables
    return PageFrame(
      title: "Changes in \(name)", facts: file.facts(path: name, statementsAt: "at the end of this page"),
      noun: "changes", counts: ["Inserted", "Updated", "Deleted"],
      tables: tables.prefix(limits.tables).enumerated().map { place, table in
        (
          table.table.name, PageFrame.sectionID(place),
          [table.inserted, table.updated, table.deleted].map(PageFrame.number)
        )
      },
      rest: PageFrame.rest(of: tables.count, limits))
  }

  // MARK: Changes

  private func add(_ change: InspectedFile.ShownChange) throws {
    if table?.name.utf8.elementsEqual(change.table.utf8) != true {
      try endList()
      table = places[TableName(change.table)].map { (change.table, $0) }
    }
    guard let place = table?.place else { return }
    let hasRoom = progress[place].shown < limits.entries && page.byteCount < limits.pageBytes
    // The note on omitted changes of a table is written once.
    guard hasRoom || !progress[place].isCut else { return }
    if list == nil { try beginList(of: change.table, at: place) }
    guard hasRoom else {
      progress[place].isCut = true
      return try endList(leavingOut: changeCount(at: place) - progress[place].shown)
    }
    counts.shown += 1
    progress[place].shown += 1
    try list?.add(entry(for: change), isReachedByTab: counts.shown == 1)
  }

  private func changeCount(at place: Int) -> Int { file.summary.tables[place].changeCount }

  /// Begins the section of a table; another one if its changes continue after those of other tables.
  private func beginList(of table: String, at place: Int) throws {
    let isFirst = !progress[place].isBegun
    progress[place].isBegun = true
    list = try EntryList(
      table, id: isFirst ? PageFrame.sectionID(place) : "\(PageFrame.sectionID(place))-from-\(counts.shown + 1)",
      note: isFirst ? changeCount(at: place).counted("change") : "continued", versions: Self.versions, on: page)
  }

  private func endList(leavingOut count: Int = 0) throws {
    let rest = count > 0 ? "\(count.counted("more change")) of this table not on this page (--full draws all)" : nil
    try list?.end(rest: rest)
    list = nil
  }

  private func entry(for change: InspectedFile.ShownChange) -> PageEntry {
    let (state, label): (PageEntry.State, String) =
      switch change.operation {
      case .insert: (.inserted, "inserted")
      case .update: (.updated, "updated")
      case .delete: (.deleted, "deleted")
      }
    let rows = rows(of: change)
    return PageEntry(
      number: Int64(counts.shown), state: state, label: label, key: key(of: change),
      notes: rows.isEmpty ? ["Nothing is set."] : [], rows: rows)
  }

  private func key(of change: InspectedFile.ShownChange) -> String {
    let limit = min(limits.characters, 100)
    let cells = (change.new ?? []) + (change.old ?? [])
    let label = RowLabel.text(of: cells.map { ConflictRecord.Cell($0.column, $0.value) })
    let key = change.key.compactMap { cell in
      cell.value.map { "\(cell.column) \($0.shown(limit: limit, partOf: cell.whole))" }
    }.joined(separator: ", ")
    let isInKey = label.map { text in change.key.contains { $0.value == .text(text) } } ?? true
    return key + (isInKey ? "" : " (\(label ?? ""))")
  }

  /// The columns that a change sets, or all of a row that is new or gone.
  private func rows(of change: InspectedFile.ShownChange) -> [PageEntry.Row] {
    let columns = change.new ?? change.old ?? []
    return columns.indices.compactMap { place in
      let before = change.old?[place]
      let after = change.new?[place]
      switch change.operation {
      case .insert where after?.value == nil, .update where after?.value == nil, .delete where before?.value == nil:
        return nil
      default:
        let versions: [PageValues.Version] = [(before?.value, before?.whole), (after?.value, after?.whole)]
        let absence = change.operation == .update ? "not in the file" : "–"
        return (columns[place].column, values.values(versions, absence: absence))
      }
    }
  }

  // MARK: The author's schema

  private func writeStatements() throws {
    guard let statements = file.statements, !statements.isEmpty else { return }
    try page.write(
      """
      <section aria-labelledby="schema">
      <h2 id="schema">The author’s schema</h2>
      <details><summary>\(statements.count.counted("statement"))</summary>

      """)
    var left = statements.count
    for statement in statements where page.byteCount < limits.pageBytes {
      try page.write("<pre>\(Markup(preformatted: statement.sql))</pre>\n")
      left -= 1
    }
    if left > 0 { try page.write("<p class=\"rest\">\(left.counted("more statement")) (--full draws all)</p>\n") }
    try page.write("</details>\n</section>\n")
  }
}
