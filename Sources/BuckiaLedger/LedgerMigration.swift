/// The numbered steps from each format of the ledger tables to the next, as an app's migrations.
///
/// A released migration never changes, so each holds its own copy of the definitions it makes; another change of the tables
/// is another migration.
enum LedgerMigration {
  /// The statements that lead from format 1 to 2, from 2 to 3, and so on.
  static let statements = [
    toFormat2, toFormat3, toFormat4, toFormat5, toFormat6, toFormat7, toFormat8, toFormatWithInvitations,
    toStateFormat, toFormatWithRowNames, toFormatWithSigners, toFormatWithTranslatedRows, toFormatWithDeletionNotices,
    toFormatWithRecipientKeys,
  ]

  /// The states of a file are no longer frozen in CHECKs.
  ///
  /// Rows wait in a TEMP table meanwhile. `ALTER TABLE … RENAME` would take fewer statements, but fails where any view or
  /// trigger of the application's schema is broken.
  private static let toFormat2 = """
    CREATE TEMP TABLE buckia_migration AS SELECT * FROM main.buckia_ledger;
    DROP TABLE main.buckia_ledger;
    CREATE TABLE main.buckia_ledger(
      entry INTEGER PRIMARY KEY,
      diff TEXT,
      sender TEXT NOT NULL,
      digest BLOB NOT NULL,
      raw INTEGER NOT NULL,
      state TEXT NOT NULL,
      inserted INTEGER NOT NULL DEFAULT 0,
      updated INTEGER NOT NULL DEFAULT 0,
      deleted INTEGER NOT NULL DEFAULT 0,
      conflicts INTEGER NOT NULL DEFAULT 0,
      omitted INTEGER NOT NULL DEFAULT 0,
      reason TEXT,
      file TEXT NOT NULL,
      recorded_at INTEGER NOT NULL,
      UNIQUE (diff, sender, digest)
    );
    CREATE UNIQUE INDEX main.buckia_ledger_raw ON buckia_ledger(digest) WHERE raw;
    INSERT INTO main.buckia_ledger SELECT * FROM temp.buckia_migration;
    DROP TABLE temp.buckia_migration;
    CREATE TEMP TABLE buckia_migration AS SELECT * FROM main.buckia_refused;
    DROP TABLE main.buckia_refused;
    CREATE TABLE main.buckia_refused(
      digest BLOB PRIMARY KEY NOT NULL,
      diff TEXT,
      sender TEXT NOT NULL,
      state TEXT NOT NULL,
      reason TEXT NOT NULL,
      file TEXT NOT NULL,
      first_at INTEGER NOT NULL,
      last_at INTEGER NOT NULL,
      times INTEGER NOT NULL DEFAULT 1
    ) WITHOUT ROWID;
    INSERT INTO main.buckia_refused SELECT * FROM temp.buckia_migration;
    DROP TABLE temp.buckia_migration;
    """

  /// A rename counts for its sender alone: of those that were kept nobody knows the sender, so they are dropped. What is held of a
  /// diff is found by an index, and large values of conflict records stand by themselves. Keys that two rows share are
  /// remembered.
  private static let toFormat3 = """
    DROP TABLE main.buckia_rename;
    CREATE TABLE main.buckia_rename(
      sender TEXT NOT NULL,
      table_name TEXT NOT NULL,
      old_name TEXT NOT NULL,
      new_name TEXT NOT NULL,
      recorded_at INTEGER NOT NULL,
      PRIMARY KEY (sender, table_name, old_name, new_name)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_value(
      value INTEGER PRIMARY KEY,
      hash INTEGER NOT NULL,
      content BLOB NOT NULL
    );
    CREATE INDEX main.buckia_value_hash ON buckia_value(hash);
    CREATE INDEX main.buckia_held_part_entry ON buckia_held_part(entry);
    CREATE TABLE main.buckia_contested_key(
      sender TEXT NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      PRIMARY KEY (sender, table_name, key)
    ) WITHOUT ROWID;
    """

  /// Contested keys of one integer, which were blobs of nine bytes, are runs of integers.
  private static let toFormat4: String = {
    let digits = (0..<16).map {
      "(instr('0123456789ABCDEF', substr(hex(key), \(3 + $0), 1)) - 1 << \(60 - 4 * $0))"
    }
    return """
      CREATE TEMP TABLE buckia_migration AS SELECT * FROM main.buckia_contested_key;
      DROP TABLE main.buckia_contested_key;
      CREATE TABLE main.buckia_contested_key(
        sender TEXT NOT NULL,
        table_name TEXT NOT NULL COLLATE NOCASE,
        key NOT NULL,
        last INTEGER,
        entry INTEGER NOT NULL,
        is_taken INTEGER NOT NULL,
        PRIMARY KEY (sender, table_name, key)
      ) WITHOUT ROWID;
      INSERT INTO main.buckia_contested_key SELECT sender, table_name, key, NULL, 0, 0 FROM temp.buckia_migration
        WHERE length(key) <> 9 OR substr(key, 1, 1) <> x'01';
      INSERT INTO main.buckia_contested_key SELECT sender, table_name, value, value, 0, 0
        FROM (SELECT sender, table_name, \(digits.joined(separator: " | ")) AS value FROM temp.buckia_migration
        WHERE length(key) = 9 AND substr(key, 1, 1) = x'01');
      DROP TABLE temp.buckia_migration;
      """
  }()

  /// The places of diffs in streams are recorded, and what diffs did to the rows here. Conflicts can be resolved later, and answers
  /// be kept as rules.
  private static let toFormat5 = """
    CREATE TABLE main.buckia_stream(
      entry INTEGER PRIMARY KEY,
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      incarnation BLOB,
      sequence INTEGER NOT NULL,
      follows TEXT,
      replaces BLOB
    );
    CREATE INDEX main.buckia_stream_sequence ON buckia_stream(stream, sequence);
    CREATE INDEX main.buckia_stream_replaces ON buckia_stream(replaces) WHERE replaces IS NOT NULL;
    CREATE INDEX main.buckia_stream_start ON buckia_stream(stream, sequence) WHERE follows IS NULL;
    CREATE TABLE main.buckia_effect(
      effect INTEGER PRIMARY KEY,
      entry INTEGER NOT NULL,
      tables BLOB NOT NULL,
      changes BLOB NOT NULL
    );
    CREATE INDEX main.buckia_effect_entry ON buckia_effect(entry);
    CREATE TABLE main.buckia_undo(
      entry INTEGER PRIMARY KEY,
      undone INTEGER NOT NULL,
      is_active INTEGER NOT NULL
    );
    CREATE INDEX main.buckia_undo_undone ON buckia_undo(undone);
    CREATE TABLE main.buckia_conflict_detail(
      conflict INTEGER PRIMARY KEY,
      written BLOB,
      rule INTEGER,
      others BLOB
    );
    CREATE TABLE main.buckia_resolution(
      resolution INTEGER PRIMARY KEY,
      conflict INTEGER NOT NULL,
      answer TEXT NOT NULL,
      decided_by TEXT NOT NULL,
      decided_at INTEGER NOT NULL,
      layout INTEGER NOT NULL,
      before BLOB,
      after BLOB
    );
    CREATE INDEX main.buckia_resolution_conflict ON buckia_resolution(conflict);
    CREATE TABLE main.buckia_rule(
      rule INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL COLLATE NOCASE,
      kind TEXT NOT NULL,
      operation TEXT NOT NULL,
      columns BLOB NOT NULL,
      answer TEXT NOT NULL,
      conflict INTEGER NOT NULL,
      decided_by TEXT NOT NULL,
      decided_at INTEGER NOT NULL,
      forgotten_at INTEGER
    );
    """

  /// Tables can have clocks.
  private static let toFormat6 = """
    CREATE TABLE main.buckia_clock(
      clock INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
      key TEXT NOT NULL
    );
    CREATE TABLE main.buckia_clock_column(
      clock INTEGER NOT NULL,
      position INTEGER NOT NULL,
      name TEXT NOT NULL COLLATE NOCASE,
      PRIMARY KEY (clock, position)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_stamp(
      stamp INTEGER PRIMARY KEY,
      clock INTEGER NOT NULL,
      diff TEXT NOT NULL,
      operation TEXT NOT NULL,
      columns BLOB NOT NULL,
      is_own INTEGER NOT NULL
    );
    CREATE INDEX main.buckia_stamp_diff ON buckia_stamp(clock, diff);
    """

  /// What diffs did here is kept compressed, that of many small ones together. What was kept before, for at most a month, is dropped.
  private static let toFormat7 = """
    DROP TABLE main.buckia_effect;
    CREATE TABLE main.buckia_effect(
      effect INTEGER PRIMARY KEY,
      first INTEGER NOT NULL,
      last INTEGER NOT NULL,
      size INTEGER NOT NULL,
      contents BLOB NOT NULL
    );
    CREATE INDEX main.buckia_effect_last ON buckia_effect(last, first);
    """

  /// Parts of the database can be shared.
  private static let toFormat8 = """
    CREATE TABLE main.buckia_share(
      share INTEGER PRIMARY KEY,
      stream BLOB NOT NULL UNIQUE,
      incarnation BLOB NOT NULL,
      name TEXT,
      scope TEXT NOT NULL,
      audience TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      diff TEXT,
      digest BLOB
    );
    CREATE TABLE main.buckia_shadow(
      shadow INTEGER PRIMARY KEY,
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      columns TEXT NOT NULL,
      UNIQUE (share, table_name)
    );
    CREATE TABLE main.buckia_outbox(
      diff TEXT PRIMARY KEY NOT NULL,
      share INTEGER NOT NULL,
      sequence INTEGER NOT NULL,
      digest BLOB NOT NULL,
      file TEXT NOT NULL,
      made_at INTEGER NOT NULL,
      is_delivered INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_outbox_share ON buckia_outbox(share, sequence);
    CREATE TABLE main.buckia_outbox_piece(
      piece INTEGER PRIMARY KEY,
      diff TEXT NOT NULL,
      bytes BLOB NOT NULL
    );
    CREATE TABLE main.buckia_acknowledgement(
      share INTEGER NOT NULL,
      sender TEXT NOT NULL,
      replica BLOB NOT NULL,
      through INTEGER NOT NULL,
      PRIMARY KEY (share, sender, replica)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_taken_back(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      PRIMARY KEY (share, table_name, key)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_vouch(
      vouch INTEGER PRIMARY KEY,
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key TEXT NOT NULL,
      store INTEGER NOT NULL,
      UNIQUE (sender, stream, table_name)
    );
    CREATE INDEX main.buckia_vouch_table ON buckia_vouch(table_name, key, store);
    CREATE INDEX main.buckia_vouch_store ON buckia_vouch(store);
    """

  /// Invitations can be made and accepted.
  private static let toFormatWithInvitations = """
    CREATE TABLE main.buckia_invitation(
      invitation BLOB PRIMARY KEY NOT NULL,
      digest BLOB NOT NULL,
      proof_key BLOB NOT NULL,
      recipient TEXT,
      scope TEXT NOT NULL,
      stream BLOB NOT NULL,
      incarnation BLOB NOT NULL,
      made_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      used_at INTEGER,
      used_by TEXT
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_accepted(
      invitation BLOB PRIMARY KEY NOT NULL,
      digest BLOB NOT NULL,
      inviter TEXT NOT NULL,
      stream BLOB NOT NULL,
      accepted_at INTEGER NOT NULL,
      file TEXT NOT NULL,
      answer TEXT NOT NULL,
      is_delivered INTEGER NOT NULL
    ) WITHOUT ROWID;
    """

  /// What streams hold is summed up, so that a difference between sender and receiver is found.
  private static let toStateFormat = """
    CREATE TABLE main.buckia_state(
      state INTEGER PRIMARY KEY,
      share INTEGER,
      sender TEXT,
      stream BLOB NOT NULL,
      replica BLOB,
      table_name TEXT NOT NULL COLLATE NOCASE,
      columns TEXT NOT NULL,
      row_count INTEGER NOT NULL,
      sums BLOB NOT NULL,
      difference BLOB,
      is_requested INTEGER NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX main.buckia_state_share ON buckia_state(share, table_name) WHERE share IS NOT NULL;
    CREATE UNIQUE INDEX main.buckia_state_sender ON buckia_state(sender, stream, table_name) WHERE sender IS NOT NULL;
    CREATE TABLE main.buckia_aside(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      hash INTEGER,
      PRIMARY KEY (share, table_name, key)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_request(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      buckets BLOB,
      PRIMARY KEY (share, table_name)
    ) WITHOUT ROWID;
    """

  /// A row may have another key here than where it comes from.
  private static let toFormatWithRowNames = """
    CREATE TABLE main.buckia_row_name(
      table_name TEXT NOT NULL COLLATE NOCASE,
      replica BLOB NOT NULL,
      key INTEGER NOT NULL,
      local INTEGER NOT NULL,
      claimant TEXT,
      PRIMARY KEY (table_name, replica, key)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_row_name_local ON buckia_row_name(table_name, local);
    CREATE TABLE main.buckia_stream_author(
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      replica BLOB NOT NULL,
      PRIMARY KEY (sender, stream)
    ) WITHOUT ROWID;
    """

  /// It is known who has signed what was sent last, and a diff may be several files.
  private static let toFormatWithSigners = """
    CREATE TEMP TABLE buckia_migration AS SELECT * FROM main.buckia_share;
    DROP TABLE main.buckia_share;
    CREATE TABLE main.buckia_share(
      share INTEGER PRIMARY KEY,
      stream BLOB NOT NULL UNIQUE,
      incarnation BLOB NOT NULL,
      name TEXT,
      scope TEXT NOT NULL,
      audience TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      diff TEXT,
      digest BLOB,
      signer TEXT
    );
    INSERT INTO main.buckia_share SELECT *, NULL FROM temp.buckia_migration;
    DROP TABLE temp.buckia_migration;
    CREATE TEMP TABLE buckia_migration AS SELECT * FROM main.buckia_outbox_piece;
    DROP TABLE main.buckia_outbox_piece;
    CREATE TABLE main.buckia_outbox_piece(
      piece INTEGER PRIMARY KEY,
      diff TEXT NOT NULL,
      part INTEGER NOT NULL,
      bytes BLOB NOT NULL
    );
    INSERT INTO main.buckia_outbox_piece SELECT piece, diff, 1, bytes FROM temp.buckia_migration;
    DROP TABLE temp.buckia_migration;
    CREATE TABLE main.buckia_outbox_part(
      diff TEXT NOT NULL,
      part INTEGER NOT NULL,
      recipients TEXT NOT NULL,
      PRIMARY KEY (diff, part)
    ) WITHOUT ROWID;
    INSERT INTO main.buckia_outbox_part SELECT o.diff, 1, coalesce(s.audience, '[]')
      FROM main.buckia_outbox AS o LEFT JOIN main.buckia_share AS s ON s.share = o.share WHERE NOT o.is_delivered;
    """

  /// The sums of a stream are of its rows as they were sent, also where these have other keys here. Where they were not, nobody knows them
  /// until everything is shared anew.
  private static let toFormatWithTranslatedRows = """
    CREATE TABLE main.buckia_translated(
      vouch INTEGER NOT NULL,
      key BLOB NOT NULL,
      local BLOB NOT NULL,
      hash INTEGER,
      PRIMARY KEY (vouch, key)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_translated_local ON buckia_translated(vouch, local);
    DELETE FROM main.buckia_state WHERE sender IS NOT NULL AND EXISTS (
      SELECT 1 FROM main.buckia_stream_author AS a JOIN main.buckia_row_name AS n ON n.replica = a.replica
      WHERE a.sender = buckia_state.sender AND a.stream = buckia_state.stream);
    """

  /// Who knows of a deletion is noted, so that it can be forgotten.
  private static let toFormatWithDeletionNotices = """
    CREATE TABLE main.buckia_told(
      clock INTEGER NOT NULL,
      key BLOB NOT NULL,
      share INTEGER NOT NULL,
      diff TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      PRIMARY KEY (clock, key, share)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_told_sequence ON buckia_told(share, sequence);
    CREATE TABLE main.buckia_heard(
      clock INTEGER NOT NULL,
      key BLOB NOT NULL,
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      diff TEXT NOT NULL,
      PRIMARY KEY (clock, key, sender, stream)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_stream_acknowledgement(
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      share INTEGER NOT NULL,
      through INTEGER NOT NULL,
      PRIMARY KEY (sender, stream, share)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_forgotten(
      clock INTEGER NOT NULL,
      share INTEGER NOT NULL,
      through INTEGER NOT NULL,
      diff TEXT NOT NULL,
      PRIMARY KEY (clock, share)
    ) WITHOUT ROWID;
    """

  /// A stamp says which diff has named the one that it is of as an origin. The streams of a replica are found by an index.
  private static let toStampsWithCarriers = """
    CREATE TEMP TABLE buckia_migration AS SELECT * FROM main.buckia_stamp;
    DROP TABLE main.buckia_stamp;
    \(RowClocks.stampDefinition)
    INSERT INTO main.buckia_stamp
      SELECT stamp, clock, diff, operation, columns, is_own, NULL FROM temp.buckia_migration;
    DROP TABLE temp.buckia_migration;
    CREATE INDEX IF NOT EXISTS main.buckia_stream_author_replica ON buckia_stream_author(replica);
    """

  /// A share knows the keys of its recipients, and which rows of theirs it has not sent yet; a stream, which of its changes were not taken.
  /// Rows wait for those that they refer to, and rows that others refer to are kept. Rows without a key are counted by their content.
  ///
  /// These tables are as they are defined now. When one of them changes, its definition of this format has to stand here.
  private static let toFormatWithRecipientKeys = [
    toStampsWithCarriers, RecipientKey.definition, UntoldRows.definition, UntakenRows.definition, ParkedRows.definition,
    KeptRows.definition,
    CountedTable.definition, WideningChanges.definition, Tombstones.definition, DecidedRows.definition,
  ].joined(separator: "\n")
}
