import Buckia

/// The page of a database's conflicts, table by table, written while they are read.
final class ConflictsPage {
  private let manager: DatabaseManager
  private let name: String
  private let filter: ConflictFilter
  private let found: [ConflictCount]
  private let limits: PageLimits
  private let page: PageWriter
  private var values: PageValues
  private var counts = PageCounts(noun: "conflict")

  /// The additions for a page of a server.
  struct Service {
    /// The links and the message.
    let site: PageSite
    /// The possible actions on a conflict; nil for none.
    let actions: (ConflictRecord) -> Markup?
    /// The content before and after the conflicts.
    let introduction: Markup
    let end: Markup
  }

  /// The additions for a page of a server, which lists the tables with one of the newest conflicts.
  var service: Service?

  /// The tables whose conflicts on the page were all met in merges.
  private var mergedTables: Set<TableName> = []

  /// - Parameters:
  ///   - manager: The database.
  ///   - name: The database, for people.
  ///   - filter: The wanted conflicts.
  ///   - found: Their number.
  ///   - limits: How much is drawn: of the conflicts, the newest.
  ///   - page: The output.
  init(
    of manager: DatabaseManager, name: String, filter: ConflictFilter, found: [ConflictCount], limits: PageLimits,
    on page: PageWriter
  ) {
    self.manager = manager
    self.name = name
    self.filter = filter
    self.found = found
    self.limits = limits
    self.page = page
    values = PageValues(limits: limits)
  }

  /// Writes the page.
  ///
  /// - Returns: The number of conflicts on it.
  func write() throws -> PageCounts {
    let newest = try newestByTable()
    let tables = countedTables().filter { service == nil || newest[TableName($0.name)] != nil }
    var frame = frame(tables)
    frame.site = service?.site
    try frame.write(on: page) {
      if let service { try page.write(service.introduction) }
      if tables.isEmpty { try page.write("<p>There are no such conflicts.</p>\n") }
      for (place, table) in tables.enumerated() {
        try write(table, at: place, newest: newest[TableName(table.name)] ?? 0)
      }
      if let service { try page.write(service.end) }
    }
    counts.left = tables.reduce(0) { $0 + $1.count } - counts.shown
    return counts
  }

  /// A table and how many conflicts it has, by kind and in all.
  private struct Table {
    let name: String
    var kinds: [ConflictKind: Int] = [:]
    var count: Int { kinds.values.reduce(0, +) }
  }

  /// The tables, in the order in which they first had a conflict.
  private func countedTables() -> [Table] {
    var tables: [Table] = []
    var places: [TableName: Int] = [:]
    for entry in found {
      let place = places[TableName(entry.table)] ?? tables.count
      if place == tables.count {
        places[TableName(entry.table)] = place
        tables.append(Table(name: entry.table))
      }
      tables[place].kinds[entry.kind, default: 0] += entry.count
    }
    return tables
  }

  /// The number of each table's conflicts among the newest, which are then the newest of that table.
  private func newestByTable() throws -> [TableName: Int] {
    var newest: [TableName: Int] = [:]
    var merged: [TableName: Int] = [:]
    try manager.forEachConflict(matching: filter, newest: limits.entries == .max ? nil : limits.entries) {
      newest[TableName($0.table), default: 0] += 1
      if $0.isOfMerge { merged[TableName($0.table), default: 0] += 1 }
    }
    mergedTables = Set(merged.keys.filter { merged[$0] == newest[$0] })
    return newest
  }

  private func frame(_ tables: [Table]) -> PageFrame {
    let kinds = ConflictKind.allCases.filter { kind in found.contains { $0.kind == kind } }
    return PageFrame(
      title: "Conflicts of \(name)", facts: facts, noun: "conflicts", counts: kinds.map(\.heading) + ["In all"],
      tables: tables.prefix(limits.tables).enumerated().map { place, table in
        let numbers = kinds.map { table.kinds[$0] ?? 0 } + [table.count]
        return (table.name, PageFrame.sectionID(place), numbers.map(PageFrame.number))
      },
      rest: PageFrame.rest(of: tables.count, limits))
  }

  /// The database and the filters of the page.
  private var facts: [(name: String, value: String)] {
    var facts = [(name: "database", value: name)]
    if let table = filter.table { facts.append(("table", table)) }
    if let diff = filter.diff { facts.append(("diff", diff)) }
    if let kind = filter.kind { facts.append(("kind", kind.rawValue)) }
    if filter.isOpen { facts.append(("state", "open: not decided yet")) }
    if service == nil {
      let isOfMerges = !found.isEmpty && found.allSatisfy { mergedTables.contains(TableName($0.table)) }
      let versions = isOfMerges ? "ours|theirs" : "local|incoming"
      facts.append(("decide", "buckia resolve \(name.shellQuoted) NUMBER --take \(versions)"))
    }
    return facts
  }

  // MARK: Conflicts

  private func write(_ table: Table, at place: Int, newest: Int) throws {
    let isOfMerges = mergedTables.contains(TableName(table.name))
    var list = try EntryList(
      table.name, id: PageFrame.sectionID(place), note: table.count.counted("conflict"),
      versions: isOfMerges ? ["BASE", "OURS", "THEIRS"] : ["Before", "Here", "Incoming"], on: page)
    var filter = filter
    filter.table = table.name
    var shown = 0
    if newest > 0 {
      try manager.forEachConflict(matching: filter, newest: newest) { record in
        guard page.byteCount < limits.pageBytes else { return }
        shown += 1
        counts.shown += 1
        try list.add(entry(for: record), isReachedByTab: counts.shown == 1)
      }
    }
    let left = table.count - shown
    let advice = service == nil ? " (--full draws all)" : ""
    try list.end(rest: left > 0 ? "\(left.counted("more conflict")) of this table not on this page\(advice)" : nil)
  }

  private func entry(for record: ConflictRecord) -> PageEntry {
    let columns = limits.characters == .max ? record.columns : record.columns.filter(record.isWorthShowing)
    var entry = PageEntry(
      number: record.id, state: record.isOpen ? .open : .resolved, label: record.isOpen ? "open" : "decided",
      key: ConflictRecord.shownKey(record.key, label: record.label), notes: record.notes,
      rows: columns.map { column in (column, versions(of: column, in: record)) })
    entry.actions = service?.actions(record)
    return entry
  }

  private func versions(of column: String, in record: ConflictRecord) -> [PageValue] {
    let rows = [record.base, record.local, record.incoming]
    let cells = rows.map { row -> PageValues.Version in (ConflictRecord.value(of: column, in: row), nil) }
    return zip(rows, values.values(cells, absence: "·")).map { row, value in
      row == nil ? PageValue(.absent, "no row") : value
    }
  }
}

extension ConflictKind {
  /// The heading of the column with the number of conflicts of the kind.
  fileprivate var heading: String {
    switch self {
    case .data: "Changed here, too"
    case .notFound: "Not here"
    case .conflict: "Key taken"
    case .constraint: "Constraint"
    case .foreignKey: "Reference"
    }
  }
}
