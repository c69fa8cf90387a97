import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Six words for the rows that are shared with another replica now. The other replica has the same words if it has the
/// same rows. `Schemas/digests.md` defines which rows and columns count.
package struct LiveWords {
  /// The streams between two replicas.
  package struct Exchange {
    /// The verified key of the other replica's owner; empty for unsigned diffs, nil if nothing was received from it.
    package internal(set) var sender: String?
    /// The other replica; nil if unknown.
    package internal(set) var replica: [UInt8]?
    /// The shares with it.
    package internal(set) var shares: [ShareEntry] = []
    /// The states of the streams received from it.
    package internal(set) var states: [StateEntry] = []
    /// The streams received from it.
    package internal(set) var brought: [[UInt8]] = []

    /// All streams, in the order of their bytes.
    package var streams: [[UInt8]] {
      Set(shares.map(\.stream) + states.map(\.stream) + brought).sorted { $0.lexicographicallyPrecedes($1) }
    }
  }

  /// The words.
  package let words: [String]
  /// The digest that the words encode: 16 bytes.
  package let digest: [UInt8]
  /// The number of rows.
  package let rowCount: Int64

  private static let domain = Array("buckia/words/v1\n".utf8)

  // MARK: Exchanges

  /// The most pairs of a sent and a received stream that are tried.
  private static let pairLimit = 8

  /// The exchanges with other replicas.
  ///
  /// Sent and received streams of the same replica form one exchange. A replica that has not acknowledged anything is
  /// identified by its sender's name; if that is unknown, too, the list has each pair that may belong together.
  ///
  /// A stream that a new key's stream has replaced does not count, even if it is still recorded because the key was
  /// confirmed later.
  ///
  /// - Throws: `SQLiteError`; `LedgerError`.
  package static func exchanges(
    on connection: borrowing SQLiteConnection, with senders: KnownSenders
  ) throws -> [Exchange] {
    var found: [Exchange] = []
    var unanswered: [ShareEntry] = []
    func name(_ sender: String) -> String? {
      if case .trusted(let name) = senders.standing(of: sender) { name } else { nil }
    }
    func isReplaced(_ stream: [UInt8], of sender: String) throws -> Bool {
      guard let present = senders.otherKeys(of: sender).first else { return false }
      return try StreamEntries.replaced(by: present, on: connection).contains(stream)
    }
    func add(_ sender: String, _ replica: [UInt8]?, _ change: (inout Exchange) -> Void) {
      let place = found.firstIndex { $0.sender == sender && $0.replica == replica } ?? found.endIndex
      if place == found.endIndex { found.append(Exchange(sender: sender, replica: replica)) }
      change(&found[place])
    }
    for share in try ShareEntry.all(on: connection) where share.sequence > 0 {
      let receivers = try AcknowledgementEntry.all(of: share.number, on: connection)
      if receivers.isEmpty { unanswered.append(share) }
      for receiver in receivers { add(receiver.sender, receiver.replica) { $0.shares.append(share) } }
    }
    for state in try StateEntry.all(on: connection) {
      guard case .sender(let sender) = state.owner, try !isReplaced(state.stream, of: sender) else { continue }
      add(sender, state.replica) { $0.states.append(state) }
    }
    // A stream without rows that have a key has no sums.
    for known in try OriginKeyEntry.streams(on: connection) where try !isReplaced(known.stream, of: known.sender) {
      add(known.sender, known.replica) { $0.brought.append(known.stream) }
    }
    var pairs: [Exchange] = []
    for share in unanswered {
      let recipients = try share.recipients
      let named = found.indices.filter { found[$0].sender.flatMap(name).map { recipients.contains($0) } ?? false }
      for place in named { found[place].shares.append(share) }
      guard named.isEmpty else { continue }
      pairs.append(Exchange(shares: [share]))
      for var exchange in found where exchange.shares.isEmpty && exchange.sender.flatMap(name) == nil {
        exchange.shares = [share]
        if recipients.count == 1, pairs.count < pairLimit { pairs.append(exchange) }
      }
    }
    return found + pairs
  }

  // MARK: Rows

  /// Reads the rows of an exchange.
  ///
  /// - Throws: `ReplicationError` where a scope cannot be followed any more; `SQLiteError`.
  package init(of exchange: Exchange, _ schema: SchemaReader, on connection: borrowing SQLiteConnection) throws {
    let scopes = try exchange.shares.map { try ShareScope(json: $0.scope) }
    let total = try ScopeRows.leavingOutFailing(in: scopes) {
      try LiveRows(exchange, schema, leavingOutFailing: $0, on: connection).total()
    }
    digest = SipHash(key: exchange.streams.first ?? []).hash(Self.domain + total.sum.bytes).bytes
    rowCount = total.rows
    words = DigestWords.words(digest)
  }
}

/// A digest as six words that two people can read to each other.
package enum DigestWords {
  /// The number of words: one for each of the first six bytes of the digest.
  package static let count = 6

  /// 256 words, sorted: no two begin with the same four letters.
  static let list = """
    acorn actor album alley amber anchor angle apple arena arrow artist aspen atlas attic autumn avenue bacon badge
    bagel baker balcony bamboo banjo barrel basket beacon beetle bench berry bicycle bishop blanket blossom bonfire
    border bottle boulder branch bread bridge broom bubble bucket button cabin cactus camel candle canoe carpet
    castle cedar cello chalk cherry chimney cider cinema circus citrus clay cliff clock cloud clover coast cobalt
    coffee comet compass copper coral cotton cousin crane crayon cricket crown crystal cushion daisy dancer delta
    desert diamond dinner doctor dolphin donkey dragon drum eagle easel echo elbow ember engine envelope evening
    fabric falcon farmer feather fennel ferry fiddle field finger flame flute forest fossil fountain fox frost garden
    garlic gazelle ginger giraffe glacier globe glove goose gravel guitar hammer harbor harvest hazel helmet heron
    hill honey horse hotel hunter igloo indigo island ivory jacket jaguar jasmine jelly jewel jigsaw journal jungle
    kayak kettle kitchen kiwi koala ladder lagoon lantern lava leather lemon letter linen lizard lobster locket
    lumber magnet mango maple marble meadow melon mercury mirror mitten mosaic mountain muffin museum napkin nectar
    needle nickel noodle notebook nutmeg oasis ocean olive onion orange orbit orchid otter oxygen oyster paddle
    palace panda paper parrot pearl pebble pencil pepper piano pickle pigeon pillow pirate planet pocket pony poppy
    potato prairie pumpkin puzzle quartz queen quilt rabbit radio raft rainbow raven ribbon river robin rocket saddle
    salmon sandal scarf shadow silver spider sugar summer sunset table tiger tulip turtle umbrella valley velvet
    violin walnut whale willow window yellow yogurt zebra zipper
    """.split(whereSeparator: \.isWhitespace).map(String.init)

  /// The words of some bytes, a word for each.
  package static func words(_ bytes: some Sequence<UInt8>) -> [String] { bytes.prefix(count).map { list[Int($0)] } }
}

/// The present rows of an exchange, each once, in the columns that all its streams have of their tables.
///
/// Integer keys that replicas assign themselves, and references to them, differ although the rows are the same. A
/// reference therefore counts as the row that it leads to (``LiveNodes``).
final class LiveRows {
  private let schema: SchemaReader
  private let connection: SQLiteConnection
  private let key: [UInt8]
  /// True if a row can be added twice.
  private let isFromSeveral: Bool
  /// The columns that the streams have of each table, in lower case.
  private var columns: [TableName: Set<String>] = [:]
  private var tables: [TableName: LiveTable] = [:]
  private var order: [LiveTable] = []

  /// Reads the rows.
  ///
  /// - Parameter leavesOutFailing: True to leave out the rows for which a condition fails.
  /// - Throws: `ReplicationError` where a scope cannot be followed any more; `SQLiteError`; `LedgerError` when the ledger is damaged.
  init(
    _ exchange: LiveWords.Exchange, _ schema: SchemaReader, leavingOutFailing leavesOutFailing: Bool,
    on connection: borrowing SQLiteConnection
  ) throws {
    self.schema = schema
    self.connection = SQLiteConnection(sharing: connection)
    key = exchange.streams.first ?? []
    isFromSeveral = exchange.streams.count > 1
    let links = try exchange.shares.flatMap { try ShareScope(json: $0.scope).keyLinks }
    var known = exchange.states
    for share in exchange.shares {
      known += try StateEntry.all(of: .share(share.number), stream: share.stream, on: connection)
    }
    for entry in known {
      let names = Set(try TableState(entry, at: connection.path).columns.map { ASCIIName.folded($0) })
      columns[entry.table] = columns[entry.table].map { $0.intersection(names) } ?? names
    }
    var names = Set(exchange.states.map(\.table))
    for share in exchange.shares {
      names.formUnion(try ScopeSchema(ShareScope(json: share.scope), schema, on: connection).tables.map(\.name))
    }
    let counted = try exchange.sender.map { try CountedTable.names(heldBy: $0, on: connection) } ?? []
    try makeTables(names.union(counted), links)
    for share in exchange.shares { try add(share, leavesOutFailing) }
    for state in exchange.states { try add(state) }
    for name in counted { try add(rowsOf: name, heldBy: exchange.sender ?? "") }
    try addParents()
  }

  /// The sum and the number of all rows.
  func total() -> (sum: Sum128, rows: Int64) {
    let nodes = order.flatMap(\.nodes)
    for node in nodes { node.resolve() }
    LiveNodes.refine(nodes)
    var sum = Sum128()
    var rows: Int64 = 0
    for table in order {
      let sums = table.sums()
      sum += sums.digest
      rows += sums.rowCount
    }
    return (sum, rows)
  }

  // MARK: Tables

  /// Creates the tables of the exchange, and the tables that they refer to.
  private func makeTables(_ names: Set<TableName>, _ links: [KeyLink]) throws {
    let related = try schema.definitions(of: names.sorted { $0.text < $1.text }, with: links)
    let targets = KeyColumns(related, links: links)
    for definition in related {
      let name = TableName(definition.name)
      let known = columns[name]
      let wanted = definition.columns.map(\.name).filter { known?.contains(ASCIIName.folded($0)) ?? true }
      let table = LiveTable(definition, columns: wanted, targets, hashing: key)
      tables[name] = table
      order.append(table)
    }
    for table in order { table.connect(to: tables) }
  }

  // MARK: Rows

  /// Adds the rows of a scope, as they would be sent.
  private func add(_ share: ShareEntry, _ leavesOutFailing: Bool) throws {
    let isOpen = try WideningChanges.areAllowed(in: share.number, on: connection)
    let rows = try ScopeRows(
      ShareScope(json: share.scope), for: isOpen ? nil : (share.number, share.readers(on: connection)),
      leavesOutFailing: leavesOutFailing, on: connection, schema)
    try cleaningUp(
      after: {
        for name in rows.tables {
          guard let table = tables[name] else { continue }
          try (rows.selections[name] ?? RowSelection()).forEachRow(
            of: table.definition, table.identity + table.columns, on: connection
          ) { row in table.add(row, isFromSeveral: isFromSeveral) }
          table.endSource()
        }
      }, by: rows.removeTables)
  }

  /// Adds the rows of a stream's table that exist here.
  private func add(_ state: StateEntry) throws {
    guard case .sender(let sender) = state.owner, let table = tables[state.table],
      let keyed = KeyedTable(table.definition, table.definition)
    else { return }
    let query = try connection.prepare(
      "SELECT \(table.results) FROM \(keyed.sql) WHERE \(keyed.condition(from: 1))")
    try Provenance(on: connection).forEach(of: keyed, stream: state.stream, from: sender) { key, _ in
      try key.withRawSpan { bytes in
        try keyed.bindKey(keyed.row(withKey: bytes), bytes, to: query)
        if try query.step() { table.add(query, isFromSeveral: isFromSeveral) }
        query.reset()
      }
    }
    table.endSource()
  }

  /// Adds the rows of a table that only their content identifies and that a sender has.
  private func add(rowsOf name: TableName, heldBy sender: String) throws {
    guard let table = tables[name] else { return }
    try ContentTables([table.definition], schema, on: connection)[name]?.forEachRow(table.results, heldBy: sender) {
      table.add($0, isFromSeveral: isFromSeveral)
    }
    table.endSource()
  }

  /// Adds the rows outside the exchange to which its rows refer. They do not count themselves.
  private func addParents() throws {
    var hasFound = true
    while hasFound {
      hasFound = false
      for table in order { table.nodes.forEach { $0.beginSearch() } }
      for table in order {
        guard let column = table.ownKey else { continue }
        let missing = table.missingKeys(in: order)
        if missing.isEmpty { continue }
        let query = try connection.prepare(
          "SELECT \(table.results) FROM main.\(table.name.quoted) WHERE \(SQLText.identifier(column)) = ?1")
        for key in missing.sorted() {
          try query.bind(key, at: 0)
          if try query.step() {
            table.add(query, isFromSeveral: true)
            hasFound = true
          }
          query.reset()
        }
        table.endSource(isCounted: false)
      }
    }
  }
}
