/// Something worth knowing about a database, a diff file or what applying it did, that refuses nothing.
///
/// ```swift
/// for warning in try database.examine().warnings where warning.code == .noPrimaryKey { print(warning.arguments[0]) }
/// ```
public struct Warning: Hashable, Codable, Sendable, CustomStringConvertible {
  /// What kind of warning.
  public let code: Code
  /// What it is about, in the order of the sentence: tables, columns, counts, reasons.
  public let arguments: [String]

  /// Makes a warning.
  package init(_ code: Code, _ arguments: String...) { self.init(code, arguments) }

  /// Makes a warning.
  package init(_ code: Code, _ arguments: [String]) {
    self.code = code
    self.arguments = arguments
  }

  /// A sentence for people.
  public var description: String { code.sentence.filled(with: arguments) }

  /// What a diff did is more than is kept for undo.
  ///
  /// - Parameter limit: How many bytes are kept.
  package static func undoNotKept(limit: Int) -> Warning {
    Warning(.undoNotKept, limit < 1 << 20 ? "\(limit) bytes" : "\(limit >> 20) MiB")
  }

  /// The kinds of warnings that are told apart. More may come.
  public enum Code: String, Codable, Sendable, CaseIterable {
    // Databases.
    case noPrimaryKey, notCreatable, fullTextSettings, checkConstraints, conflictClauses, expressionDefault,
      unknownCollation, generatedColumn, brokenReferences, unenforceableForeignKey, nullKeys, integerKeys, triggers,
      counters, timesKept, heldChanges, damaged, notCheckable, hiddenReference, reusedKeys, noKeyRange, stateAltered,
      laterColumns
    // Ids of new files.
    case clockNotKept, outgoingNotNoted, clockBehind
    // Which replica a database is.
    case replicaRestored, replicaCopied, replicaUnknown, replicaOtherHome, replicaMissing, replicaNotKept
    case replicaUnsettled, diffNotNoted
    // Shares.
    case recipientUnconfirmed, shareReplaced, shareBeside, newColumnShared, rowsWithoutParent, parentNotShared,
      parentLeftOut, rowsHeldBack, conditionFails, parentColumnsLeftOut
    // Snapshots.
    case sentNotNoted, sentBefore, snapshotIncomplete, firstSnapshot
    // Clocks of tables.
    case clocksNotKept, rowsReturned
    // Merges of databases.
    case renumberedRows, remappedKeys, matchedRows, schemaNotMerged
    // Rows that came.
    case keyChanged, lastKeys, rowsKeptByTriggers, rowsOfExternalContent, rowsOfSQLite, alteredText, heldAppliedFirst
    case heldNotApplied
    case noOldValues, undoNotKept
    // Streams: the table, how many of 256 parts, and the stream.
    case stateDiffers
    // Who sends: the replica, and who has signed as it first.
    case replicaOfAnother
    // Indexes: the module, the name and the table come first.
    case indexIncomplete, indexToRebuild, indexNotRebuilt, indexRebuilt, indexRebuiltWithoutFunctions,
      indexRebuiltWithoutOtherRows, functionsKept
    // Options.
    case unknownTable, nothingMatched
    // Files that came.
    case attachmentsNotUnpacked, refusalNotRecorded, notRemoved, replacedMeanwhile, datasetAdopted
    // Files made of others.
    case inverseOfChanges, schemaLeftOut, rebasedWithoutDefinition, newKeysUnchecked, undeclaredReferences

    /// The sentence for people: `$1` is the first argument.
    fileprivate var sentence: String {
      switch self {
      case .noPrimaryKey:
        "table \"$1\" has no primary key: its rows are told apart by rowid, which VACUUM may change; a primary key "
          + "keeps diffs small"
      case .notCreatable: "table \"$1\" cannot be created where it is missing: $2"
      case .fullTextSettings: "table \"$1\" has settings of its own ($2), which do not travel"
      case .checkConstraints:
        "table \"$1\" has CHECK constraints, which do not travel: where it is missing, it is created without them"
      case .conflictClauses:
        "table \"$1\" has ON CONFLICT clauses, which do not travel and do not count while diffs are applied"
      case .expressionDefault: "column \"$1.$2\": its default is an expression, which does not travel; its values do"
      case .unknownCollation:
        "column \"$1.$2\": its collating sequence $3 does not travel; where an index needs it, only a program that "
          + "has it can apply diffs"
      case .generatedColumn:
        "column \"$1.$2\" is generated: it is computed by the receiver where it exists there, and never created"
      case .brokenReferences: "table \"$1\" has $2 rows that refer to others that are not there"
      case .unenforceableForeignKey: "table \"$1\" has a foreign key that cannot be enforced: $2"
      case .nullKeys: "table \"$1\" has $2 rows with NULL in the primary key: they are told apart by content alone"
      case .integerKeys:
        "table \"$1\" has integer keys, which each copy of the database gives out by itself: two copies give the same key "
          + "to different rows, and then those rows, and all that refer to them, are conflicts; random keys, such as "
          + "UUIDs, avoid that"
      case .triggers:
        "$1 triggers: but for what they write into full-text and R-tree indexes, they do not fire while diffs are "
          + "applied, unless that is asked for"
      case .counters:
        "column \"$1.$2\" is a count that triggers keep: it travels as a value, so when two copies have counted by "
          + "themselves, one of the counts is lost; recompute it afterwards. A merge adds up what both have counted"
      case .timesKept:
        "column \"$1.$2\" is a time that a trigger notes: where two copies have noted different ones, applying a diff meets "
          + "a conflict; a merge keeps the later one"
      case .heldChanges:
        "changes of table \"$1\" from $2 ($3) are kept until there is a place for them: $4; the next apply after that "
          + "takes them"
      case .damaged: "the database is damaged: $1"
      case .notCheckable: "the database cannot be checked for damage: $1"
      case .hiddenReference:
        "column \"$1.$2\" seems to refer to rows of table \"$3\", which no foreign key declares: where a row gets another key because its "
          + "own one is taken, what refers to it by this column does not follow; declare it, or name it among the references of the scope"
      case .reusedKeys:
        "table \"$1\" is shared, and is not declared AUTOINCREMENT: if its newest row is deleted, SQLite gives the key to the next one, which "
          + "others then take for the same row, with what refers to it"
      case .noKeyRange:
        "table \"$1\" gives its rows integer keys, and is not declared AUTOINCREMENT: it has no range of keys of its own, so two copies of the "
          + "database give the same key to different rows"
      case .stateAltered:
        "table \"$1\": the records of stream $2 were altered by another program; sharing everything again corrects them"
      case .laterColumns:
        "the scope leaves out columns of table \"$1\" by name: a column that the table gets later is shared; name the columns that are shared "
          + "instead"

      case .clockNotKept:
        "$1 cannot be written, so ids made within one second may be out of order, and files made here are not recognised in an inbound folder"
      case .outgoingNotNoted:
        "$1 cannot be written, so the folder of this file may be mistaken for an inbound folder, from which applied files are removed"
      case .clockBehind:
        "the clock of this device says $1, but this database has ids or ledger entries of $2, so the clock was wrong then or is now; new "
          + "ids are greater than all before them in any case"

      case .replicaRestored:
        "this database is in an earlier state than when it was last used here, as if a backup had been restored. It goes on as another "
          + "replica, so that others do not take what it sends from now on for what it sent before. What it had shared and received in "
          + "shares since then comes back after its next share, with the next one of each recipient; other files that it had applied since "
          + "then have to arrive again"
      case .replicaCopied:
        "this database is a copy of $1, which is still there. It goes on as a replica of its own, so that others can tell the two apart; "
          + "there is nothing to be done"
      case .replicaOtherHome:
        "this database was registered in another home folder than this one, and goes on as the same replica; use one home folder for a "
          + "database"
      case .replicaUnknown:
        "this database comes from elsewhere: nothing is known here of its replica. It goes on as a replica of its own, since the "
          + "database that it was copied from may be in use as well; there is nothing to be done"
      case .replicaMissing:
        "another database, or a later state of this one, was at this path before. This one is a replica of its own from now on, so that "
          + "others can tell the two apart"
      case .replicaNotKept:
        "$1 cannot be written, so it would not be noticed if this database were a copy, or had been restored from a backup"
      case .replicaUnsettled:
        "this database was restored or copied, which cannot be settled while it is only read, so the file does not say which replica it is from"
      case .diffNotNoted:
        "that this file was made could not be noted in the database, so it would not be noticed if an earlier state were restored: $1"

      case .recipientUnconfirmed:
        "the card of $1 is not confirmed, so the file can be read by the person who made that card; compare the fingerprint with its "
          + "owner, then trust it"
      case .shareReplaced:
        "this takes the place of the share with $1: they keep what they have, and get what has changed since; all get the same "
          + "files from now on"
      case .shareBeside:
        "the share with $1 has the same scope and is separate: they get changes only "
          + "when you share with them again"
      case .newColumnShared:
        "column \"$1.$2\" has been added since the last share, and is shared, as the scope does not leave it out"

      case .rowsWithoutParent:
        "table \"$1\": $2 of its rows are not shared, because their \"$3\" refers to rows of table \"$4\" that do not exist, such as "
          + "the row $5; make them refer to another row, or delete them"
      case .parentNotShared:
        "table \"$1\": $2 of its rows are not shared, because their \"$3\" refers to table \"$4\", which is not shared, such as the row $5; share "
          + "that table, too, leave the column out or rewrite it, or let it be NULL"
      case .parentLeftOut:
        "table \"$1\": $2 of its rows are not shared, because their \"$3\" refers to rows of table \"$4\" that are not shared, such as the "
          + "row $5; they are shared once those rows are"
      case .parentColumnsLeftOut:
        "rows of table \"$1\" go along where shared rows refer to them, without $2; name the table in the scope to share these columns, too"
      case .rowsHeldBack:
        "table \"$1\": $2 of its rows are held back, such as the row $5: they would newly be shared because of a change by a person who does not have "
          + "them; they are sent when you allow it"

      case .conditionFails:
        "table \"$1\": $2 of its rows are not shared, such as the row $5: a condition of the scope fails for their values; correct the values, or the "
          + "condition"

      case .clocksNotKept:
        "$1: its clocks cannot note what was sent, so under the policy \"latest\" earlier diffs of others would win over it; send "
          + "these changes again: $2"
      case .firstSnapshot:
        "there was no snapshot $1 yet, so it begins with all that is in the database: none of your next diffs has what was "
          + "changed before and not sent"
      case .snapshotIncomplete:
        "$1: it was not rewritten after $2 was applied, and the changes of that diff are no longer on record, so your next diff has them, too"
      case .rowsReturned:
        "table \"$1\": $2 of the rows that a UNIQUE constraint has kept out are here again, since the values that they need are free"
      case .sentBefore:
        "$1 of the rows that have changed since the snapshot was made were sent before, and are not sent again"
      case .sentNotNoted: "$1 cannot note what was sent, so the next difference after an apply has it again: $2"

      case .renumberedRows:
        "table \"$1\" has no primary key, and both sides have given the same rowids to different rows: $2 of the incoming "
          + "rows got others"
      case .remappedKeys:
        "table \"$1\": both sides have added rows with the same numbers; incoming rows that got others: $2, and what refers to them follows"
      case .matchedRows:
        "table \"$1\": incoming rows that are here under other numbers, and keep those: $2"
      case .schemaNotMerged:
        "what the other side has changed in the schema could not be taken over, but for new tables and columns: $1"

      case .keyChanged:
        "the changes of table \"$1\" were not written: it has another primary key here than at their author, whose schema "
          + "was not adopted"
      case .lastKeys:
        "table \"$1\": a row that came has the key $2, one of the last that there are: as long as it is there, SQLite gives new rows random keys"
      case .rowsKeptByTriggers:
        "the rows that came for the virtual table \"$1\" were not written: triggers keep it here"
      case .rowsOfExternalContent:
        "the rows that came for the virtual table \"$1\" were not written: here it indexes \"$2\""
      case .rowsOfSQLite:
        "the rows that came for the table \"$1\" were not written: it is SQLite's own, and each database keeps its own"
      case .alteredText:
        "column \"$1.$2\": some text that came in is not valid, and this database stores UTF-16, which has no room "
          + "for it; U+FFFD stands in its place"
      case .heldAppliedFirst: "what was held of $1 has been applied first"
      case .heldNotApplied: "what is held of $1 for table \"$2\" cannot be applied: $3"
      case .noOldValues:
        "$1 of its updates and deletes have no old values, as in a patchset: whether they met rows that were changed "
          + "here could not be seen, and such rows were overwritten without a conflict"

      case .undoNotKept:
        "it cannot be undone: what it changed is more than the $1 that are kept for undo"

      case .stateDiffers:
        "table \"$1\": the rows received by stream $3 differ from those that its sender has sent, in $2 of 256 parts of the keys; the next files that both "
          + "share with each other correct them, or sharing everything again"

      case .replicaOfAnother:
        "its sender claims to be the replica $1, whose files $2 signed before: its rows count as those of another replica. A replica belongs to "
          + "one person, so one of the two claims falsely; after the wrong one is removed from the contacts, the other one counts"

      case .indexIncomplete: "the $1 index \"$2\" over \"$3\" $4"
      case .indexToRebuild: "the $1 index \"$2\" over \"$3\" $4: rebuild it"
      case .indexNotRebuilt: "the $1 index \"$2\" over \"$3\" $4, and cannot be rebuilt ($5)"
      case .indexRebuilt: "the $1 index \"$2\" over \"$3\" has no triggers: it was rebuilt from that table"
      case .indexRebuiltWithoutFunctions:
        "the $1 index \"$2\" over \"$3\" $4; it was rebuilt from \"$5\", but its triggers call functions: see that "
          + "it answers as your application expects"
      case .indexRebuiltWithoutOtherRows:
        "the $1 index \"$2\" over \"$3\" $4; it was rebuilt from \"$5\", but its triggers read other rows, too: see that "
          + "it answers as your application expects"
      case .functionsKept:
        "the functions $1 stay on this connection until it is closed: one of its statements was running"

      case .unknownTable: "there is no table \"$1\": what the options say of it has no effect; check its name"
      case .nothingMatched: "no rows were matched by their columns: only those of shares are"

      case .attachmentsNotUnpacked: "its $1 attached files were not unpacked"
      case .refusalNotRecorded: "the refusal is not recorded: $1"
      case .notRemoved: "$1: it was applied, but cannot be removed: $2"
      case .replacedMeanwhile:
        "$1: it was applied, and another file has taken its place since it was read; that one is for the next time"

      case .datasetAdopted:
        "it is of the dataset $1, and this database was part of none: it belongs to that one from now on, and files of others are refused"

      case .inverseOfChanges:
        "this undoes what the author of the changes did, not what applying them did here: where a conflict was met, "
          + "the two differ, and a local row that was replaced does not come back"
      case .rebasedWithoutDefinition:
        "table \"$1\": its definition is not known, so UNIQUE values, foreign keys and the collating sequence of its key were "
          + "not looked at"
      case .newKeysUnchecked:
        "table \"$1\": its new keys are greater than those in the files; whether they are free, only the database can tell"
      case .undeclaredReferences:
        "table \"$1\": rows that refer to it by no declared foreign key do not follow its new keys"
      case .schemaLeftOut:
        "the schema of its author in $1 is left out, so it cannot be adopted from this file; apply that file for that"
      }
    }
  }
}

extension String {
  /// The sentence with its places filled: `$1` stands for the first argument, `$*` for all of them.
  package func filled(with arguments: [String]) -> String {
    var parts = split(separator: "$", omittingEmptySubsequences: false)
    var text = String(parts.removeFirst())
    for part in parts {
      let place = part.first?.wholeNumberValue
      text +=
        place.map { arguments.indices.contains($0 - 1) ? arguments[$0 - 1] : "" } ?? arguments.joined(separator: ", ")
      text += part.dropFirst()
    }
    return text
  }
}
