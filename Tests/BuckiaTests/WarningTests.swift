import Buckia
import SQLiteConnections
import TestSupport
import Testing

@Suite("Warnings and error codes")
struct WarningTests {
  /// The text of each code with the arguments 1, 2, …
  private static let wording: [(code: Warning.Code, text: String)] = [
    (
      .noPrimaryKey,
      "table \"1\" has no primary key: its rows are told apart by rowid, which VACUUM may change; a primary key keeps diffs small"
    ),
    (.notCreatable, "table \"1\" cannot be created where it is missing: 2"),
    (.fullTextSettings, "table \"1\" has settings of its own (2), which do not travel"),
    (
      .checkConstraints,
      "table \"1\" has CHECK constraints, which do not travel: where it is missing, it is created without them"
    ),
    (
      .conflictClauses,
      "table \"1\" has ON CONFLICT clauses, which do not travel and do not count while diffs are applied"
    ),
    (.expressionDefault, "column \"1.2\": its default is an expression, which does not travel; its values do"),
    (
      .unknownCollation,
      "column \"1.2\": its collating sequence 3 does not travel; where an index needs it, only a program that has it can apply diffs"
    ),
    (
      .generatedColumn,
      "column \"1.2\" is generated: it is computed by the receiver where it exists there, and never created"
    ),
    (.brokenReferences, "table \"1\" has 2 rows that refer to others that are not there"),
    (.unenforceableForeignKey, "table \"1\" has a foreign key that cannot be enforced: 2"),
    (.nullKeys, "table \"1\" has 2 rows with NULL in the primary key: they are told apart by content alone"),
    (
      .integerKeys,
      "table \"1\" has integer keys, which each copy of the database gives out by itself: two copies give the same key to different rows, and then those rows, and all that refer to them, are conflicts; random keys, such as UUIDs, avoid that"
    ),
    (
      .triggers,
      "1 triggers: but for what they write into full-text and R-tree indexes, they do not fire while diffs are applied, unless that is asked for"
    ),
    (
      .counters,
      "column \"1.2\" is a count that triggers keep: it travels as a value, so when two copies have counted by themselves, one of the counts is lost; recompute it afterwards. A merge adds up what both have counted"
    ),
    (
      .timesKept,
      "column \"1.2\" is a time that a trigger notes: where two copies have noted different ones, applying a diff meets a conflict; a merge keeps the later one"
    ),
    (
      .heldChanges,
      "changes of table \"1\" from 2 (3) are kept until there is a place for them: 4; the next apply after that takes them"
    ),
    (.damaged, "the database is damaged: 1"),
    (.notCheckable, "the database cannot be checked for damage: 1"),
    (
      .hiddenReference,
      "column \"1.2\" seems to refer to rows of table \"3\", which no foreign key declares: where a row gets another key because its own one is taken, what refers to it by this column does not follow; declare it, or name it among the references of the scope"
    ),
    (
      .reusedKeys,
      "table \"1\" is shared, and is not declared AUTOINCREMENT: if its newest row is deleted, SQLite gives the key to the next one, which others then take for the same row, with what refers to it"
    ),
    (
      .noKeyRange,
      "table \"1\" gives its rows integer keys, and is not declared AUTOINCREMENT: it has no range of keys of its own, so two copies of the database give the same key to different rows"
    ),
    (
      .stateAltered,
      "table \"1\": the records of stream 2 were altered by another program; sharing everything again corrects them"
    ),
    (
      .laterColumns,
      "the scope leaves out columns of table \"1\" by name: a column that the table gets later is shared; name the columns that are shared instead"
    ),
    (
      .clockNotKept,
      "1 cannot be written, so ids made within one second may be out of order, and files made here are not recognised in an inbound folder"
    ),
    (
      .outgoingNotNoted,
      "1 cannot be written, so the folder of this file may be mistaken for an inbound folder, from which applied files are removed"
    ),
    (
      .clockBehind,
      "the clock of this device says 1, but this database has ids or ledger entries of 2, so the clock was wrong then or is now; new ids are greater than all before them in any case"
    ),
    (
      .replicaRestored,
      "this database is in an earlier state than when it was last used here, as if a backup had been restored. It goes on as another replica, so that others do not take what it sends from now on for what it sent before. What it had shared and received in shares since then comes back after its next share, with the next one of each recipient; other files that it had applied since then have to arrive again"
    ),
    (
      .replicaCopied,
      "this database is a copy of 1, which is still there. It goes on as a replica of its own, so that others can tell the two apart; there is nothing to be done"
    ),
    (
      .replicaUnknown,
      "this database comes from elsewhere: nothing is known here of its replica. It goes on as a replica of its own, since the database that it was copied from may be in use as well; there is nothing to be done"
    ),
    (
      .replicaOtherHome,
      "this database was registered in another home folder than this one, and goes on as the same replica; use one home folder for a database"
    ),
    (
      .replicaMissing,
      "another database, or a later state of this one, was at this path before. This one is a replica of its own from now on, so that others can tell the two apart"
    ),
    (
      .replicaNotKept,
      "1 cannot be written, so it would not be noticed if this database were a copy, or had been restored from a backup"
    ),
    (
      .replicaUnsettled,
      "this database was restored or copied, which cannot be settled while it is only read, so the file does not say which replica it is from"
    ),
    (
      .diffNotNoted,
      "that this file was made could not be noted in the database, so it would not be noticed if an earlier state were restored: 1"
    ),
    (
      .recipientUnconfirmed,
      "the card of 1 is not confirmed, so the file can be read by the person who made that card; compare the fingerprint with its owner, then trust it"
    ),
    (
      .shareReplaced,
      "this takes the place of the share with 1: they keep what they have, and get what has changed since; all get the same files from now on"
    ),
    (
      .shareBeside,
      "the share with 1 has the same scope and is separate: they get changes only when you share with them again"
    ),
    (
      .newColumnShared,
      "column \"1.2\" has been added since the last share, and is shared, as the scope does not leave it out"
    ),
    (
      .rowsWithoutParent,
      "table \"1\": 2 of its rows are not shared, because their \"3\" refers to rows of table \"4\" that do not exist, such as the row 5; make them refer to another row, or delete them"
    ),
    (
      .parentNotShared,
      "table \"1\": 2 of its rows are not shared, because their \"3\" refers to table \"4\", which is not shared, such as the row 5; share that table, too, leave the column out or rewrite it, or let it be NULL"
    ),
    (
      .parentLeftOut,
      "table \"1\": 2 of its rows are not shared, because their \"3\" refers to rows of table \"4\" that are not shared, such as the row 5; they are shared once those rows are"
    ),
    (
      .rowsHeldBack,
      "table \"1\": 2 of its rows are held back, such as the row 5: they would newly be shared because of a change by a person who does not have them; they are sent when you allow it"
    ),
    (
      .conditionFails,
      "table \"1\": 2 of its rows are not shared, such as the row 5: a condition of the scope fails for their values; correct the values, or the condition"
    ),
    (
      .parentColumnsLeftOut,
      "rows of table \"1\" go along where shared rows refer to them, without 2; name the table in the scope to share these columns, too"
    ),
    (.sentNotNoted, "1 cannot note what was sent, so the next difference after an apply has it again: 2"),
    (
      .sentBefore,
      "1 of the rows that have changed since the snapshot was made were sent before, and are not sent again"
    ),
    (
      .snapshotIncomplete,
      "1: it was not rewritten after 2 was applied, and the changes of that diff are no longer on record, so your next diff has them, too"
    ),
    (
      .firstSnapshot,
      "there was no snapshot 1 yet, so it begins with all that is in the database: none of your next diffs has what was changed before and not sent"
    ),
    (
      .clocksNotKept,
      "1: its clocks cannot note what was sent, so under the policy \"latest\" earlier diffs of others would win over it; send these changes again: 2"
    ),
    (
      .rowsReturned,
      "table \"1\": 2 of the rows that a UNIQUE constraint has kept out are here again, since the values that they need are free"
    ),
    (
      .renumberedRows,
      "table \"1\" has no primary key, and both sides have given the same rowids to different rows: 2 of the incoming rows got others"
    ),
    (
      .remappedKeys,
      "table \"1\": both sides have added rows with the same numbers; incoming rows that got others: 2, and what refers to them follows"
    ),
    (.matchedRows, "table \"1\": incoming rows that are here under other numbers, and keep those: 2"),
    (
      .schemaNotMerged,
      "what the other side has changed in the schema could not be taken over, but for new tables and columns: 1"
    ),
    (
      .keyChanged,
      "the changes of table \"1\" were not written: it has another primary key here than at their author, whose schema was not adopted"
    ),
    (
      .lastKeys,
      "table \"1\": a row that came has the key 2, one of the last that there are: as long as it is there, SQLite gives new rows random keys"
    ),
    (.rowsKeptByTriggers, "the rows that came for the virtual table \"1\" were not written: triggers keep it here"),
    (.rowsOfExternalContent, "the rows that came for the virtual table \"1\" were not written: here it indexes \"2\""),
    (
      .rowsOfSQLite,
      "the rows that came for the table \"1\" were not written: it is SQLite's own, and each database keeps its own"
    ),
    (
      .alteredText,
      "column \"1.2\": some text that came in is not valid, and this database stores UTF-16, which has no room for it; U+FFFD stands in its place"
    ),
    (.heldAppliedFirst, "what was held of 1 has been applied first"),
    (.heldNotApplied, "what is held of 1 for table \"2\" cannot be applied: 3"),
    (
      .noOldValues,
      "1 of its updates and deletes have no old values, as in a patchset: whether they met rows that were changed here could not be seen, and such rows were overwritten without a conflict"
    ),
    (.undoNotKept, "it cannot be undone: what it changed is more than the 1 that are kept for undo"),
    (
      .stateDiffers,
      "table \"1\": the rows received by stream 3 differ from those that its sender has sent, in 2 of 256 parts of the keys; the next files that both share with each other correct them, or sharing everything again"
    ),
    (
      .replicaOfAnother,
      "its sender claims to be the replica 1, whose files 2 signed before: its rows count as those of another replica. A replica belongs to one person, so one of the two claims falsely; after the wrong one is removed from the contacts, the other one counts"
    ),
    (.indexIncomplete, "the 1 index \"2\" over \"3\" 4"),
    (.indexToRebuild, "the 1 index \"2\" over \"3\" 4: rebuild it"),
    (.indexNotRebuilt, "the 1 index \"2\" over \"3\" 4, and cannot be rebuilt (5)"),
    (.indexRebuilt, "the 1 index \"2\" over \"3\" has no triggers: it was rebuilt from that table"),
    (
      .indexRebuiltWithoutFunctions,
      "the 1 index \"2\" over \"3\" 4; it was rebuilt from \"5\", but its triggers call functions: see that it answers as your application expects"
    ),
    (
      .indexRebuiltWithoutOtherRows,
      "the 1 index \"2\" over \"3\" 4; it was rebuilt from \"5\", but its triggers read other rows, too: see that it answers as your application expects"
    ),
    (.functionsKept, "the functions 1 stay on this connection until it is closed: one of its statements was running"),
    (.unknownTable, "there is no table \"1\": what the options say of it has no effect; check its name"),
    (.nothingMatched, "no rows were matched by their columns: only those of shares are"),
    (.attachmentsNotUnpacked, "its 1 attached files were not unpacked"),
    (.refusalNotRecorded, "the refusal is not recorded: 1"),
    (.notRemoved, "1: it was applied, but cannot be removed: 2"),
    (
      .replacedMeanwhile,
      "1: it was applied, and another file has taken its place since it was read; that one is for the next time"
    ),
    (
      .datasetAdopted,
      "it is of the dataset 1, and this database was part of none: it belongs to that one from now on, and files of others are refused"
    ),
    (
      .inverseOfChanges,
      "this undoes what the author of the changes did, not what applying them did here: where a conflict was met, the two differ, and a local row that was replaced does not come back"
    ),
    (
      .schemaLeftOut,
      "the schema of its author in 1 is left out, so it cannot be adopted from this file; apply that file for that"
    ),
    (
      .rebasedWithoutDefinition,
      "table \"1\": its definition is not known, so UNIQUE values, foreign keys and the collating sequence of its key were not looked at"
    ),
    (
      .newKeysUnchecked,
      "table \"1\": its new keys are greater than those in the files; whether they are free, only the database can tell"
    ),
    (.undeclaredReferences, "table \"1\": rows that refer to it by no declared foreign key do not follow its new keys"),
  ]

  @Test("Every warning code has a text, which names no command and no option")
  func sentences() {
    for (code, text) in Self.wording {
      #expect(Warning(code, "1", "2", "3", "4", "5").description == text)
      #expect(!text.contains("--") && !text.contains("`"))
    }
    #expect(Self.wording.map(\.code) == Warning.Code.allCases)
  }

  @Test("Placeholders in an argument are not replaced")
  func dollars() {
    #expect(Warning(.damaged, "$1 $*").description == "the database is damaged: $1 $*")
  }

  @Test("The warnings of an examination have codes, and name the table and the column")
  func examination() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(
      "CREATE TABLE a(x, y DEFAULT (1 + 1), z AS (x)); CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END",
      on: folder.file("a"))
    #expect(
      try DatabaseManager(path).examine().warnings == [
        Warning(.noPrimaryKey, "a"), Warning(.expressionDefault, "a", "y"), Warning(.generatedColumn, "a", "z"),
        Warning(.triggers, "1"),
      ])
  }

  @Test(
    "The raw values of error codes stay the same",
    arguments: [
      (BuckiaErrorCode.noSuchFile, "no-such-file"), (.unreadableFolder, "unreadable-folder"),
      (.alreadyExists, "alreadyExists"), (.encrypted, "encrypted"), (.untrusted, "untrusted"),
      (.fromTheFuture, "from-the-future"), (.alreadyApplied, "already-applied"), (.equivocation, "equivocation"),
      (.unknownSchema, "unknown-schema"), (.unsupported, "unsupported"), (.noDatabase, "no-database"),
      (.misuse, "misuse"), (.busy, "busy"), (.newerLedger, "newer-ledger"), (.transactionLost, "transaction-lost"),
      (.deferredViolations, "deferred-violations"),
      (.cancelled, "cancelled"), (.noSuchTable, "no-such-table"), (.invalidSelection, "invalid-selection"),
      (.refusedTable, "refused-table"), (.missingTable, "missing-table"), (.keyDiffers, "key-differs"),
      (.columnsDiffer, "columns-differ"), (.schemaDiffers, "schema-differs"),
      (.refusedDefinition, "refused-definition"), (.conflict, "conflict"), (.unreadable, "unreadable"),
      (.behindUnread, "behind-unread"), (.alteredLedger, "altered-ledger"), (.damagedDatabase, "damaged-database"),
      (.noIDsLeft, "no-ids-left"), (.notReplaceable, "not-replaceable"),
    ])
  func words(code: BuckiaErrorCode, word: String) {
    #expect(code.rawValue == word)
  }

  @Test("Errors of lower modules keep their code, context and message")
  func errors() throws {
    let folder = try TemporaryFolder()
    let missing = #expect(throws: BuckiaError.self) { try DatabaseManager(folder.file("none")).log() }
    #expect(missing?.code == .noDatabase)
    #expect(missing?.description == "\(folder.file("none")): there is no such database; check the path")
    let isFolder = #expect(throws: BuckiaError.self) { try DatabaseManager(folder.path).log() }
    #expect(isFolder?.description == "\(folder.path): this is a folder, where a database was expected")

    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY)")
    let file = exchange.folder.file("a.bdiff")
    try exchange.send("INSERT INTO notes VALUES (1)", to: .file(file, replacing: false))
    let taken = #expect(throws: BuckiaError.self) {
      try exchange.send("INSERT INTO notes VALUES (1)", to: .file(file, replacing: false))
    }
    #expect(taken?.code == .alreadyExists)
    #expect(taken?.context.path == file)
    #expect(taken?.description == "\(file): a file of that name is there already")

    let table = #expect(throws: BuckiaError.self) {
      try exchange.database.createDatabaseDiff(
        since: nil, output: .folder(exchange.folder.path), options: DiffOptions(tables: ["none"]))
    }
    #expect(table?.code == .noSuchTable)
    #expect(table?.context.table == "none")
  }

  @Test("A table that the schema mode forbids to create is refused with the name of the mode, not of an option")
  func exact() throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY)")
    try exchange.send("CREATE TABLE tags(id INTEGER PRIMARY KEY); INSERT INTO tags VALUES (1)")
    let outcome = try #require(try exchange.apply(ApplyOptions(schema: .exact)).diffs.first)
    #expect(outcome.code == .schemaDiffers)
    #expect(outcome.reason == "table \"tags\" is missing here, and the schema mode `exact` allows no change")
  }
}
