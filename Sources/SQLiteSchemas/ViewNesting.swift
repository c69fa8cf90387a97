/// How often views use each other. SQLite writes a view out wherever it is used, so thirty views that each use the one before twice
/// become a billion, and only to prepare a query never ends.
package struct ViewNesting: Sendable {
  /// How many views one may come to.
  private static let limit = 4_096

  /// Why the views are refused; nil when they are fine.
  package private(set) var refusal: String?

  private var bodies: [TableName: [TableName]] = [:]
  private var sizes: [TableName: Int] = [:]

  /// Counts the views of a schema.
  package init(_ statements: [SchemaStatement]) {
    let views = statements.filter { $0.kind == .view }
    let names = Set(views.map(\.name))
    for view in views {
      let tokens = SQLTokens(view.sql)
      // Behind CREATE VIEW and the view's own name. Rather too many than too few: a column may have a view's name.
      let places = tokens.tokens.indices.dropFirst(3).filter { !tokens.isWord("as", at: $0 - 1) }
      bodies[view.name] = places.compactMap { tokens.name(at: $0) }.map { TableName($0) }.filter(names.contains)
    }
    for view in views where refusal == nil { count(view.name) }
  }

  /// Counts a view and those it uses, without recursion: their chain may be as long as they are many.
  private mutating func count(_ view: TableName) {
    var path: [(name: TableName, next: Int)] = [(view, 0)]
    var open: Set<TableName> = [view]
    while let top = path.last {
      let used = bodies[top.name] ?? []
      if sizes[top.name] != nil || top.next == used.count {
        let size = sizes[top.name] ?? 1 + used.reduce(0) { $0 + (sizes[$1] ?? 0) }
        guard size <= Self.limit else {
          refusal = "the view \(top.name) uses other views more than \(Self.limit) times"
          return
        }
        sizes[top.name] = size
        open.remove(top.name)
        path.removeLast()
        continue
      }
      path[path.count - 1].next += 1
      let next = used[top.next]
      // SQLite itself refuses a view that uses itself.
      if sizes[next] == nil, open.insert(next).inserted { path.append((next, 0)) }
    }
  }
}
