import Foundation
import SQLiteConnections
import Testing

@Suite("buckia apply, log, conflicts, verify, init and doctor")
struct ApplyCommandTests {
  /// Anna's changes as a diff file in `inbound`, and Ben's database, in which he changed the same row.
  private func annaAndBen() throws -> (bench: Workbench, id: String) {
    let bench = try DiffCommandTests.pair()
    try FileManager.default.createDirectory(atPath: bench.path("inbound"), withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("ben.db"))
    try bench.sql("ben.db", "UPDATE notes SET text = 'Ben' WHERE id = 2; INSERT INTO notes VALUES(10, 'mine')")
    let document = try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound", "--json"]).json
    return (bench, try #require(document["id"] as? String))
  }

  @Test("A folder is applied once: the conflict is recorded, the file removed, and the ledger lists it")
  func story() throws {
    let (bench, id) = try annaAndBen()
    try Transcript(
      """
      $ cp inbound/\(id).bdiff sent.bdiff
      $ buckia verify inbound
            file                                       signature  sender
      good  inbound/\(id).bdiff  none       unsigned
      $ buckia apply ben.db inbound
      applied  \(id).bdiff  unsigned
        inserted 2, deleted 1, conflicts 1

      \(id).bdiff
      …
      3 rows changed by 1 file in ….
      The ledger tables (buckia_…) were made in ben.db.
      Removed 1 file from inbound: it was applied.
      Trust: any (…)
      1 conflict. See it with: buckia conflicts ben.db
      $ ls inbound
      $ buckia conflicts ben.db
      #1  notes, id = 2 (Ben)
        The row was changed here, too; the local row was kept.
        From \(id) (unsigned)
        column  before  here   incoming
        text    'b'     'Ben'  'B'
      $ buckia log ben.db
      … UTC  applied  \(id)  unsigned
        inserted 2, deleted 1, conflicts 1
      $ buckia apply ben.db sent.bdiff
      state            file        sender    inserted  updated  deleted  conflicts
      already-applied  sent.bdiff  unsigned         –        –        –          –

      0 rows changed by 0 files in ….
      Trust: any (…)
      $ sql ben.db SELECT * FROM notes
      1|a|NULL
      2|Ben|NULL
      4|d|NULL
      10|mine|NULL
      $ sql ben.db SELECT * FROM tags
      x
      $ ls
      ben.db
      inbound
      new.db
      old.db
      sent.bdiff
      """
    ).play(on: bench)
  }

  @Test("The JSON documents have the documented shape")
  func documents() throws {
    let (bench, id) = try annaAndBen()
    let verified = try #require(try bench.buckia(["verify", "inbound", "--json"]).json["files"] as? [[String: Any]])
    #expect(Set(verified[0].keys) == ["path", "id", "ok", "sender", "signature", "encrypted", "code", "reason"])
    #expect(verified[0]["id"] as? String == id)
    #expect(verified[0]["ok"] as? Bool == true)

    let shown = try bench.buckia(["show", "inbound/\(id).bdiff", "--json"]).json
    #expect((shown["manifest"] as? [String: Any])?["id"] as? String == id)
    let changes = try #require(shown["changes"] as? [[String: Any]])
    #expect(changes.count == 4)
    #expect(changes.allSatisfy { Set($0.keys) == ["table", "op", "key", "old", "new"] })

    let applied = try bench.buckia(["apply", "ben.db", "inbound", "--json", "--keep"]).json
    #expect(applied["trust"] as? String == "any")
    #expect(applied["ignored"] as? Int == 0)
    #expect(applied["seconds"] as? Double != nil)
    let diff = try #require((applied["diffs"] as? [[String: Any]])?.first)
    let keys: Set<String> = [
      "id", "path", "sender", "state", "inserted", "updated", "deleted", "conflicts", "omitted", "schemaChanges",
      "heldParts", "reason",
    ]
    #expect(keys.isSubset(of: diff.keys))
    #expect(diff["state"] as? String == "applied")
    #expect(diff["conflicts"] as? Int == 1)
    #expect((diff["schemaChanges"] as? [String])?.count == 2)
    #expect(try bench.names(in: "inbound") == ["\(id).bdiff"])

    let entry = try #require(
      (try bench.buckia(["log", "ben.db", "--json"]).json["entries"] as? [[String: Any]])?.first)
    #expect(entry["id"] as? String == id)
    #expect(entry["state"] as? String == "applied")
    #expect((entry["appliedAt"] as? String)?.contains(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) == true)

    let records = try bench.buckia(["conflicts", "ben.db", "--json"]).json["conflicts"] as? [[String: Any]]
    let record = try #require(records?.first)
    #expect(record["diff"] as? String == id)
    #expect(record["kind"] as? String == "data")
    #expect(record["outcome"] as? String == "kept-local")
    #expect((record["key"] as? [String: Any])?["id"] as? Int == 2)
    #expect((record["base"] as? [String: Any])?["text"] as? String == "b")
    #expect((record["local"] as? [String: Any])?["text"] as? String == "Ben")
    #expect((record["incoming"] as? [String: Any])?["text"] as? String == "B")
  }

  @Test("--dry-run changes nothing")
  func dryRun() throws {
    let (bench, _) = try annaAndBen()
    let before = try Data(contentsOf: bench.folder.appendingPathComponent("ben.db"))
    let outcome = try bench.buckia(["apply", "ben.db", "inbound", "--dry-run"])
    #expect(outcome.status == 0)
    #expect(outcome.output.contains("This was a dry run: nothing was changed. It would be 3 rows."))
    #expect(try Data(contentsOf: bench.folder.appendingPathComponent("ben.db")) == before)
    #expect(try bench.names(in: "inbound").count == 1)
  }

  @Test("A policy decides conflicts; if a person must decide, the exit code is 2")
  func policies() throws {
    let (bench, _) = try annaAndBen()
    #expect(try bench.buckia(["apply", "ben.db", "inbound", "--on-conflict", "abort"]).status == 2)
    #expect(try bench.sql("ben.db", "SELECT text FROM notes WHERE id = 2") == ["Ben"])
    #expect(try bench.names(in: "inbound").count == 1)
    let taken = try bench.buckia([
      "apply", "ben.db", "inbound", "--on-conflict", "take-incoming", "--fail-on-conflict",
    ])
    #expect(taken.status == 2)
    #expect(try bench.sql("ben.db", "SELECT text FROM notes WHERE id = 2") == ["B"])
  }

  @Test("A damaged file is refused with its reason, and the other files are applied")
  func damaged() throws {
    let (bench, id) = try annaAndBen()
    let later = try bench.buckia(["ksuid", "new"]).output.split(separator: "\n")[0]
    var bytes = try Data(contentsOf: bench.folder.appendingPathComponent("inbound/\(id).bdiff"))
    bytes[bytes.count / 2] ^= 0xff
    try bytes.write(to: bench.folder.appendingPathComponent("inbound/\(later).bdiff"))
    try Data("hello".utf8).write(to: bench.folder.appendingPathComponent("inbound/letter.txt"))
    try Transcript(
      """
      $ buckia verify inbound
      ? 1
            file …
      good  inbound/\(id).bdiff …
      bad   inbound/\(later).bdiff …

      inbound/\(later).bdiff: …
      …
      $ buckia apply ben.db inbound
      ? 1
      applied  \(id).bdiff  unsigned
      …
      rejected  \(later).bdiff  …
      …
      \(later).bdiff
        rejected: …
      …
      1 other file in the folder was left alone.
      …
      $ ls inbound
      \(later).bdiff
      letter.txt
      $ buckia log ben.db
      …
      … rejected: …
      …
      """
    ).play(on: bench)
  }

  @Test("A locked database is reported as busy, with exit code 3")
  func busy() throws {
    let (bench, _) = try annaAndBen()
    let other = try SQLiteConnection(opening: bench.path("ben.db"), as: .readWrite)
    try other.execute("BEGIN EXCLUSIVE")
    let outcome = try bench.buckia(["log", "ben.db", "--busy-timeout", "0", "--json"])
    #expect(outcome.status == 3)
    #expect((try outcome.json["error"] as? [String: Any])?["code"] as? String == "busy")
    #expect(try bench.buckia(["apply", "ben.db", "inbound", "--busy-timeout", "0"]).status == 3)
    try other.execute("ROLLBACK")
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
  }

  @Test("A missing database is named", arguments: [["log", "no.db"], ["conflicts", "no.db"], ["doctor", "no.db"]])
  func missing(arguments: [String]) throws {
    let bench = try Workbench()
    let outcome = try bench.buckia(arguments)
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics.hasPrefix("buckia: no.db: "))
    #expect(try bench.names().isEmpty)
  }

  @Test("A path that does not exist stops apply before it changes anything")
  func missingPath() throws {
    let (bench, _) = try annaAndBen()
    let outcome = try bench.buckia(["apply", "ben.db", "inbound", "nowhere"])
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics.hasPrefix("buckia: nowhere: "))
    #expect(try bench.names(in: "inbound").count == 1)
  }

  @Test("init creates the ledger, says what it did, and keeps the trust mode")
  func initialize() throws {
    try Transcript(
      """
      $ buckia init new.db
      new.db is a new, empty database.
      The ledger tables were made.
      Trust: any (…)
      $ buckia init new.db --trust known
      The ledger tables are there already.
      Trust: known (only diff files signed by a trusted contact are applied)
      $ buckia log new.db
      The ledger is empty: no diff file has arrived yet.
      $ buckia conflicts new.db
      There are no conflicts.
      """
    ).play(on: Workbench())
  }

  @Test("init --silent-days sets how long a silent replica is waited for; 0 means for ever")
  func silence() throws {
    let bench = try Workbench()
    for days in ["30", "0"] {
      #expect(try bench.buckia(["init", "new.db", "--silent-days", days]).status == 0)
      #expect(try bench.sql("new.db", "SELECT value FROM buckia_settings WHERE name = 'silent_days'") == [days])
    }
    let negative = try bench.buckia(["init", "new.db", "--silent-days=-1"])
    #expect(negative.status == 64 && negative.diagnostics.contains("must not be negative"))
    #expect(try bench.sql("new.db", "SELECT value FROM buckia_settings WHERE name = 'silent_days'") == ["0"])
  }

  @Test("doctor lists what replicates and what does not")
  func doctor() throws {
    let bench = try Workbench()
    // In one piece, because the trigger contains semicolons.
    try SQLiteConnection(opening: bench.path("app.db"), as: .create).execute(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, t); CREATE TABLE log(line); CREATE VIRTUAL TABLE words USING fts5(w);
      CREATE VIRTUAL TABLE places USING rtree(id, x, y); CREATE VIRTUAL TABLE old USING fts4(w);
      CREATE VIRTUAL TABLE bare USING fts5(w, content=''); CREATE VIRTUAL TABLE over USING fts5(t, content=notes);
      CREATE VIRTUAL TABLE kept USING fts5(w);
      CREATE TRIGGER k AFTER INSERT ON notes BEGIN INSERT INTO kept(w) VALUES (new.t); END;
      CREATE VIRTUAL TABLE odd USING fts5(w, tokenize = 'porter porter');
      INSERT INTO odd(odd, rank) VALUES ('rank', 'bm25(2.0)');
      """)
    let document = try bench.buckia(["doctor", "app.db", "--json"]).json
    let tables = try #require(document["replicates"] as? [[String: Any]])
    #expect(Set(tables.compactMap { $0["name"] as? String }) == ["notes", "log", "words", "places", "odd"])
    let skipped = try #require(document["skipped"] as? [[String: Any]])
    let names = Set(skipped.compactMap { $0["name"] as? String })
    #expect(names.isSuperset(of: ["old", "bare", "over", "kept", "kept_content", "old_segdir"]))
    // The internal tables of replicated tables are not listed as skipped.
    #expect(names.isDisjoint(with: ["words", "words_content", "places_node"]))
    let warnings = try #require(document["warnings"] as? [String])
    #expect(warnings.contains { $0.hasPrefix("table \"odd\" cannot be created where it is missing: its tokenizer") })
    #expect(warnings.contains("table \"odd\" has settings of its own (rank), which do not travel"))
    #expect(!warnings.contains { $0.contains("\"words\"") })
    #expect(skipped.allSatisfy { ($0["reason"] as? String)?.isEmpty == false })
    let text = try bench.buckia(["doctor", "app.db"])
    #expect(text.status == 0)
    #expect(text.output.hasPrefix("5 tables replicate:\n"))
    #expect(text.output.contains("Does not replicate:\n"))
  }

  @Test("Diff files can be inverted, joined and sorted into diff files")
  func changesetOfDiffFiles() throws {
    let (bench, id) = try annaAndBen()
    try Transcript(
      """
      $ cp old.db copy.db
      $ buckia apply copy.db inbound --keep --quiet
      $ buckia changeset invert inbound/\(id).bdiff -o undo.bdiff --quiet
      $ buckia verify undo.bdiff --quiet
      $ buckia apply copy.db undo.bdiff --quiet
      $ sql copy.db SELECT id, text FROM notes
      1|a
      2|b
      3|c
      $ buckia changeset sort inbound/\(id).bdiff -o sorted.bdiff --quiet
      $ buckia changeset concat sorted.bdiff undo.bdiff -o none.bdiff
      Nothing remains to be changed, so no file was written.
      $ buckia changeset sort inbound/\(id).bdiff -o plain.changeset --quiet
      $ buckia show plain.changeset --limit 0
      …
        notes         1        1        1
        tags          1        –        –
      """
    ).play(on: bench)
  }

  @Test("A diff file can be applied from a pipe, and is recognised when it comes again")
  func pipe() throws {
    let (bench, id) = try annaAndBen()
    let file = try Data(contentsOf: bench.folder.appendingPathComponent("inbound/\(id).bdiff"))
    #expect(try bench.buckia(["verify", "-"], input: file).status == 0)
    #expect(
      try bench.buckia(["apply", "ben.db", "-"], input: file).output.hasPrefix("state    file            sender"))
    #expect(try bench.buckia(["log", "ben.db"]).output.contains(id))
    let again = try bench.buckia(["apply", "ben.db", "inbound", "--json"]).json
    #expect((again["diffs"] as? [[String: Any]])?.first?["state"] as? String == "already-applied")
  }

  @Test("A file that needs more room than there is does not block the other files")
  func noRoom() throws {
    let bench = try Workbench()
    try bench.sql("notes.db", "CREATE TABLE notes(id INTEGER PRIMARY KEY, text)")
    try FileManager.default.copyItem(atPath: bench.path("notes.db"), toPath: bench.path("mine.db"))
    try FileManager.default.createDirectory(atPath: bench.path("inbound"), withIntermediateDirectories: false)
    // More than is kept in memory. The other file is newer and small.
    let large = "inbound/0ujsszwN8NRY24YaXiTIE2VWDTS.changeset"
    try bench.record("notes.db", "INSERT INTO notes VALUES(1, zeroblob(34000000))", to: large)
    try bench.record(
      "notes.db", "INSERT INTO notes VALUES(2, 'small')", to: "inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.changeset")
    let outcome = try bench.buckia(
      ["apply", "mine.db", "inbound", "--json"], environment: ["TMPDIR": bench.path("missing")])
    #expect(outcome.status == 1)
    let states = (try outcome.json["diffs"] as? [[String: Any]])?.map { $0["state"] as? String }
    #expect(states == ["rejected", "applied"])
    #expect(try bench.sql("mine.db", "SELECT id FROM notes") == ["2"])
    // The file is not at fault, so the ledger does not record it as refused.
    #expect(try bench.sql("mine.db", "SELECT count(*) FROM buckia_refused") == ["0"])
    #expect(try bench.buckia(["apply", "mine.db", "inbound"]).status == 0)
  }
}
