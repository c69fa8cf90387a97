import BuckiaApply
import BuckiaKSUID
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Changes of a stream under the policy `take-incoming` that are older than what is here, by the clock of their table.
///
/// Without this, two people who have both shared an edit of a value swap their edits, and of three who share with each other two values chase
/// each other without end. What was edited here and not shared yet is not in the clock, so an incoming change takes its place.
final class OutdatedChanges {
  private let policies: ConflictPolicies
  private let id: KSUID
  private let connection: SQLiteConnection
  private var stamps: [TableName: StampedRows?] = [:]
  /// What was left out of the changes of a row.
  private var found: [TableName: [[UInt8]: LeftOut]] = [:]

  /// What is left out of a change.
  enum LeftOut {
    /// The values of some columns.
    case values(Set<Int>)
    /// An INSERT of a row that was deleted later.
    case insertion
    /// A DELETE of a row that was inserted later.
    case deletion
  }

  /// - Parameter id: The diff.
  /// - Returns: nil where no table takes what is incoming.
  init?(_ policies: ConflictPolicies, of id: KSUID?, on connection: borrowing SQLiteConnection) {
    guard let id, policies.usesTakeIncoming else { return nil }
    self.policies = policies
    self.id = id
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// What was left out of a change.
  func leftOut(of change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ table: KeyedTable) -> LeftOut? {
    guard let rows = found[table.name] else { return nil }
    let row = change.operation == .insert ? reader.new : reader.old
    return table.hasKey(row) ? rows[table.key(row, bytes)] : nil
  }

  /// Writes what is left of a change.
  ///
  /// - Parameter origin: Where the change comes from; nil for the diff itself.
  /// - Returns: True if some of it is left out; otherwise nothing is written.
  /// - Throws: `SQLiteError`.
  func write(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable,
    _ origin: OriginRun?, into writer: inout ChangesetWriter
  ) throws -> Bool {
    guard policies.policy(for: table.name) == .takeIncoming, let stamps = try stamps(of: table) else { return false }
    let row = change.operation == .insert ? reader.new : reader.old
    let key = table.key(row, bytes)
    let here = try LocalRow(row, bytes, of: table, on: connection)
    let stamped = try stamps.row(key, isHere: here != nil)
    let origin = origin ?? OriginRun(count: 1, diff: id)
    func note(_ leftOut: LeftOut) -> Bool {
      found[table.name, default: [:]][key] = leftOut
      return true
    }
    guard let here else {
      guard change.operation == .insert, let deletion = stamped.deletion?.diff, deletion > origin.diff,
        try !table.finds(table.lookup, row, bytes, on: connection)
      else { return false }
      return note(.insertion)
    }
    // A row whose key is spelled otherwise now is deleted and inserted.
    guard here.hasSameKey(as: row, bytes, of: table) else { return false }
    if change.operation == .delete {
      guard let insertion = stamped.insertion?.diff, insertion > origin.diff else { return false }
      return note(.deletion)
    }
    let other = reader.new.indices.filter { place in
      reader.new[place].isDefined && !header.isKey(place)
        && here.encoded(place) != bytes.array(reader.new[place].encoded)
    }
    let outdated = Set(
      other.filter { place in
        guard let setter = stamped.columns[ASCIIName.folded(table.columns[place])] ?? stamped.insertion else {
          return false
        }
        return setter.diff > origin.diff(of: place, change.operation)
      })
    guard !outdated.isEmpty else { return false }
    let left = other.filter { !outdated.contains($0) }
    if !left.isEmpty {
      writer.beginChange(.update, isIndirect: change.isIndirect)
      for place in row.indices {
        if header.isKey(place) || left.contains(place), change.operation == .update || header.isKey(place) {
          writer.append(row[place], of: bytes)
        } else if left.contains(place) {
          // What was there before the INSERT is not known.
          writer.appendNull()
        } else {
          writer.appendUndefined()
        }
      }
      for place in row.indices {
        if left.contains(place) { writer.append(reader.new[place], of: bytes) } else { writer.appendUndefined() }
      }
    }
    return note(.values(outdated))
  }

  private func stamps(of table: KeyedTable) throws -> StampedRows? {
    if let known = stamps[table.name] { return known }
    let found = try StampedRows(of: table.local, includingOwn: true, on: connection)
    stamps[table.name] = found
    return found
  }
}
