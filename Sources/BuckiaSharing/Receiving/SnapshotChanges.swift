import BuckiaApply
import BuckiaByteStreams
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What a snapshot of a stream, or rows that it holds anew, change for those who have got the stream before, or have shared rows with
/// its sender.
///
/// A snapshot holds all rows of the scope as INSERTs, another diff all those of some buckets. What has not changed since it came is left
/// out, so that what was edited here stays. A row that has, and was not edited here, is an UPDATE. What the stream had and has no more is
/// a DELETE. A row that its sender has got from here is an UPDATE of what was sent: what is the same is left out, also where it has been
/// deleted here since. And a row that is known to be one that is here, whoever has brought it, is an UPDATE of what nobody knows to have
/// been there.
final class SnapshotChanges {
  private let connection: SQLiteConnection
  private let vouchers: Vouchers
  private let tables: KeyedTables
  private let place: StreamPlace
  private let sender: String
  private let resent: ResentRows
  /// What its sender is known to have got from here.
  private let sent: [PeerShadow]
  /// The tables in which a row with the key of an incoming one is that row: others have got another key.
  private let identified: Set<TableName>
  /// The keys with which incoming rows were sent, by their keys here, where the two differ.
  private let sentKeys: [TableName: [[UInt8]: [UInt8]]]

  init(
    _ resent: ResentRows, _ place: StreamPlace, from sender: String, _ tables: KeyedTables, _ vouchers: Vouchers,
    sent: [PeerShadow], identified: Set<TableName>, sentKeys: [TableName: [[UInt8]: [UInt8]]] = [:],
    on connection: borrowing SQLiteConnection
  ) {
    self.sentKeys = sentKeys
    self.identified = identified
    self.resent = resent
    self.sent = sent
    self.place = place
    self.sender = sender
    self.tables = tables
    self.vouchers = vouchers
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// The streams whose rows the snapshot replaces: its own, and one that it takes the place of.
  private var streams: [[UInt8]] { [place.stream] + (place.replaces.map { [$0] } ?? []) }

  /// Turns the changes of a snapshot into those.
  ///
  /// - Parameter schema: The schema of the database.
  /// - Returns: nil where nothing of the stream has come before, and nothing was sent.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  func changes(of incoming: IncomingChanges, _ schema: SchemaReader) throws -> IncomingChanges? {
    var brought: [TableName] = []
    for stream in streams { brought += try VouchEntry.tables(of: stream, from: sender, on: connection) }
    brought = brought.filter { resent.concern($0) }
    guard !brought.isEmpty || !sent.isEmpty || !identified.isEmpty else { return nil }
    let result = incoming.changeset.makeEmpty()
    var present: [TableName: Set<[UInt8]>] = [:]
    var last: ChangesetTable?
    let kept = TemporaryBuffer()
    try Changesets.forEachChange(of: incoming.changeset, knowing: incoming.feed.summary()) { change, reader, bytes in
      guard let header = reader.table else { return }
      var writer = ChangesetWriter()
      var isKnown = false
      if change.operation == .insert, let table = tables.table(of: header), table.hasKey(reader.new) {
        let local = table.key(reader.new, bytes)
        let isAnew = resent.cover(sentKeys[table.name]?[local] ?? local, of: table.name)
        if isAnew, let key = table.comparable(local) {
          present[table.name, default: []].insert(key)
        }
        if isAnew || identified.contains(table.name) {
          isKnown = try write(reader.new, bytes, of: table, header, into: &writer)
        }
      }
      if !isKnown { writer.append(encoded: bytes.extracting(change.range).withUnsafeBytes { Array($0) }) }
      guard writer.count > 0 else { return }
      if last != header {
        var beginning = ChangesetWriter()
        beginning.beginTable(header)
        try kept.write(beginning.bytes)
        last = header
      }
      try kept.write(writer.bytes)
    }
    var added: [TableDefinition] = []
    for name in Set(brought).sorted(by: { $0.text < $1.text }) {
      guard let entry = schema.entry(named: name), entry.kind == .table else { continue }
      let local = try schema.definition(of: entry)
      let author = incoming.definitions?.first { TableName($0.name) == name }
      guard let table = KeyedTable(author ?? local, local) else { continue }
      if try writeDeletions(of: table, author ?? local, except: present[name] ?? [], into: result), author == nil {
        added.append(local)
      }
    }
    try result.write(contentsOf: kept)
    return try incoming.replacing(changeset: result, adding: added)
  }

  /// Writes what a row of the snapshot changes here.
  ///
  /// - Returns: Whether that is known; otherwise it stays an INSERT.
  private func write(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable,
    into writer: inout ChangesetWriter
  ) throws -> Bool {
    guard let known = try vouchers.hash(row, bytes, of: table, streams: streams, from: sender) else {
      return try writeReturned(row, bytes, of: table, header, into: &writer)
        || writeIdentified(row, bytes, of: table, header, into: &writer)
    }
    // Whoever has lost a row gets it back.
    guard let here = try LocalRow(row, bytes, of: table, on: connection) else { return false }
    // What has been edited here since is for the next share from here to say.
    if known == StreamRowHash(row, bytes, table.seeds).value { return true }
    guard here.hash == known else { return try writeIdentified(row, bytes, of: table, header, into: &writer) }
    let changed = here.changedPlaces(row, bytes, header)
    here.values.withRawSpan { mine in
      Self.writeUpdate(of: changed, to: row, bytes, header, into: &writer) { place, writer in
        writer.append(here.slices[place], of: mine)
      }
    }
    return true
  }

  /// Writes how a row differs from the one here that it is known to be.
  ///
  /// - Returns: Whether it is known to be one.
  private func writeIdentified(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable,
    into writer: inout ChangesetWriter
  ) throws -> Bool {
    guard identified.contains(table.name), let here = try LocalRow(row, bytes, of: table, on: connection) else {
      return false
    }
    let changed = here.changedPlaces(row, bytes, header)
    Self.writeUpdate(of: changed, to: row, bytes, header, into: &writer) { place, writer in
      // It is not known what was there: where something is, it is a conflict.
      if header.isKey(place) { writer.append(row[place], of: bytes) } else { writer.appendNull() }
    }
    return true
  }

  /// Writes what the sender has changed of a row that they have got from here.
  ///
  /// - Returns: Whether they have got it from here.
  private func writeReturned(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable,
    into writer: inout ChangesetWriter
  ) throws -> Bool {
    for shadow in sent {
      guard let base = try shadow.values(row, bytes, of: table) else { continue }
      let changed = row.indices.filter { place in
        guard !header.isKey(place), let value = base[place] else { return false }
        return value != bytes.array(row[place].encoded)
      }
      Self.writeUpdate(of: changed, to: row, bytes, header, into: &writer) { place, writer in
        if !header.isKey(place), let value = base[place] {
          writer.append(encoded: value)
        } else {
          writer.append(row[place], of: bytes)
        }
      }
      return true
    }
    return false
  }

  /// Writes an UPDATE of some columns to the values of a row; nothing where there are none.
  ///
  /// - Parameter old: Writes the old value of a column of the key, or of one that is changed.
  private static func writeUpdate(
    of changed: [Int], to row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable,
    into writer: inout ChangesetWriter, old: (Int, inout ChangesetWriter) -> Void
  ) {
    guard !changed.isEmpty else { return }
    let isChanged = Set(changed)
    writer.beginChange(.update)
    for place in row.indices {
      if header.isKey(place) || isChanged.contains(place) { old(place, &writer) } else { writer.appendUndefined() }
    }
    for place in row.indices {
      if isChanged.contains(place) { writer.append(row[place], of: bytes) } else { writer.appendUndefined() }
    }
  }

  /// The keys with which the stream has sent rows, by their keys here, where the two differ.
  private func brought(of table: KeyedTable) throws -> [[UInt8]: [[UInt8]]] {
    guard let number = try vouchers.number(of: table, stream: place.stream, from: sender) else { return [:] }
    var found: [[UInt8]: [[UInt8]]] = [:]
    for (key, row) in try TranslatedRows(of: number).all(on: connection) { found[row.local, default: []].append(key) }
    return found
  }

  /// Deletes the rows that the stream had, and that are here on its account alone.
  ///
  /// - Returns: Whether there are any.
  private func writeDeletions(
    of table: KeyedTable, _ author: TableDefinition, except present: Set<[UInt8]>, into output: TemporaryBuffer
  ) throws -> Bool {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: author.name, keyFlags: author.keyFlags))
    let header = writer.count
    let sent = try resent.isPartial ? brought(of: table) : [:]
    for key in try vouchers.keys(of: table, streams: streams, from: sender) {
      guard (sent[key] ?? [key]).allSatisfy({ resent.cover($0, of: table.name) }),
        let comparable = table.comparable(key), !present.contains(comparable)
      else { continue }
      try key.withRawSpan { bytes in
        let row = table.row(withKey: bytes)
        guard try !vouchers.stays(row, bytes, of: table, withoutStreams: streams, from: sender),
          let here = try LocalRow(row, bytes, of: table, on: connection)
        else { return }
        here.values.withRawSpan { mine in
          writer.beginChange(.delete)
          for place in row.indices { writer.append(here.slices[place], of: mine) }
        }
      }
    }
    guard writer.count > header else { return false }
    try output.write(writer.bytes)
    return true
  }
}
