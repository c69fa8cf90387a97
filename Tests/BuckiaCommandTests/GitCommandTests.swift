import Foundation
import Testing

@Suite("Databases in git", .enabled(if: GitRepository.isAvailable, GitRepository.requirement))
struct GitCommandTests {
  private static let notes =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT); INSERT INTO notes VALUES (1, 'one'), (2, 'two'), (3, 'three')"

  /// A repository with a database in a subfolder, under a name with spaces.
  private static let path = "sub folder/my notes.sqlite"

  private static func repository(_ sql: String = notes) throws -> GitRepository {
    let repository = try GitRepository()
    try repository.shell("mkdir 'sub folder'")
    try repository.sql(path, sql)
    try repository.commit("base")
    return repository
  }

  @Test(
    "A merge without conflicts is committed, from a subfolder too, and leaves no trace", arguments: ["", "sub folder"])
  func clean(folder: String) throws {
    let repository = try Self.repository()
    try repository.diverge(
      main: { try repository.sql(Self.path, "UPDATE notes SET title = 'eins' WHERE id = 1") },
      side: {
        try repository.sql(Self.path, "UPDATE notes SET title = 'zwei' WHERE id = 2; DELETE FROM notes WHERE id = 3")
      })
    try repository.git("merge -q --no-edit side", in: folder)
    #expect(try repository.sql(Self.path, "SELECT * FROM notes; PRAGMA integrity_check") == ["1|eins", "2|zwei", "ok"])
    #expect(try repository.sql(Self.path, "SELECT name FROM sqlite_schema WHERE name LIKE 'buckia%'").isEmpty)
    #expect(try repository.git("status --porcelain").output.isEmpty)
  }

  @Test("A conflict leaves the path unmerged; the file has our rows, the merged changes and the record")
  func conflict() throws {
    let repository = try Self.repository()
    try repository.diverge(
      main: { try repository.sql(Self.path, "UPDATE notes SET title = 'ours' WHERE id = 1") },
      side: {
        try repository.sql(Self.path, "UPDATE notes SET title = 'theirs' WHERE id = 1; DELETE FROM notes WHERE id = 3")
      })
    let merge = try repository.git("merge --no-edit side", status: 1)
    #expect(merge.diagnostics.contains("1 conflict of rows"))
    #expect(merge.diagnostics.contains("buckia conflicts 'sub folder/my notes.sqlite'"))
    #expect(try repository.unmerged() == [Self.path])
    #expect(try repository.sql(Self.path, "SELECT * FROM notes") == ["1|ours", "2|two"])
    let conflicts = try repository.shell("\"$BUCKIA\" conflicts '\(Self.path)' --json").output
    #expect(conflicts.contains("\"theirs\"") && conflicts.contains("\"ours\""))
    try repository.commit("resolved")
    #expect(try repository.unmerged().isEmpty)
  }

  @Test("A later merge of the same branches starts from the earlier one, even after a key collision")
  func again() throws {
    let repository = try Self.repository()
    try repository.shell("\"$BUCKIA\" git install --no-remap --quiet")
    try repository.diverge(
      main: { try repository.sql(Self.path, "INSERT INTO notes VALUES (9, 'ours')") },
      side: { try repository.sql(Self.path, "INSERT INTO notes VALUES (9, 'theirs')") })
    try repository.git("merge --no-edit side", status: 1)
    try repository.commit("resolved")
    try repository.git("checkout -q side")
    try repository.git("merge -q --ff-only main")
    try repository.sql(Self.path, "UPDATE notes SET title = 'later' WHERE id = 9")
    try repository.commit("side again")
    try repository.git("checkout -q main")
    try repository.sql(Self.path, "UPDATE notes SET title = 'TWO' WHERE id = 2")
    try repository.commit("main again")
    try repository.git("merge -q --no-edit side")
    #expect(try repository.sql(Self.path, "SELECT title FROM notes WHERE id IN (2, 9)") == ["TWO", "later"])
  }

  @Test("Schema changes of both sides and tables without keys are merged")
  func schemasAndKeylessTables() throws {
    let repository = try Self.repository(Self.notes + "; CREATE TABLE log(line); INSERT INTO log VALUES ('start')")
    try repository.diverge(
      main: {
        try repository.sql(
          Self.path,
          "ALTER TABLE notes ADD COLUMN mine; CREATE INDEX i ON notes(title); INSERT INTO log VALUES ('main')")
      },
      side: {
        try repository.sql(
          Self.path,
          "ALTER TABLE notes ADD COLUMN yours DEFAULT 5; CREATE TABLE added(x CHECK (x > 0)); INSERT INTO log VALUES ('side')"
        )
      })
    try repository.git("merge -q --no-edit side")
    #expect(
      try repository.sql(
        Self.path, "SELECT mine, yours FROM notes WHERE id = 1; SELECT line FROM log; SELECT name FROM sqlite_schema")
        == ["NULL|5", "start", "main", "side", "notes", "log", "i", "added"])
  }

  @Test("A file added on both sides is merged: equal rows become one, and others conflict")
  func addedByBoth() throws {
    let repository = try Self.repository()
    let both = "CREATE TABLE t(id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'same')"
    try repository.diverge(
      main: { try repository.sql("new.sqlite", both + "; INSERT INTO t VALUES (2, 'main')") },
      side: { try repository.sql("new.sqlite", both + "; INSERT INTO t VALUES (3, 'side')") })
    try repository.git("merge -q --no-edit side")
    #expect(try repository.sql("new.sqlite", "SELECT x FROM t") == ["same", "main", "side"])
    try repository.diverge2(
      main: { try repository.sql("other.sqlite", both + "; INSERT INTO t VALUES (2, 'main')") },
      side: { try repository.sql("other.sqlite", both + "; INSERT INTO t VALUES (2, 'side')") })
    try repository.git("merge --no-edit second", status: 1)
    #expect(try repository.unmerged() == ["other.sqlite"])
    #expect(try repository.sql("other.sqlite", "SELECT x FROM t") == ["same", "main"])
  }

  @Test("A file deleted on one side and changed on the other stays unmerged, as with any file in git")
  func deletedAndChanged() throws {
    let repository = try Self.repository()
    try repository.diverge(
      main: { try repository.sql(Self.path, "UPDATE notes SET title = 'x'") },
      side: { try repository.git("rm -q '\(Self.path)'") })
    let merge = try repository.git("merge --no-edit side", status: 1)
    #expect(merge.output.contains("CONFLICT (modify/delete)"))
    #expect(try repository.sql(Self.path, "SELECT DISTINCT title FROM notes") == ["x"])
  }

  @Test("Rebase, cherry-pick, stash and worktrees merge databases, too")
  func otherCommands() throws {
    let repository = try Self.repository()
    try repository.diverge(
      main: { try repository.sql(Self.path, "UPDATE notes SET title = 'eins' WHERE id = 1") },
      side: { try repository.sql(Self.path, "UPDATE notes SET title = 'zwei' WHERE id = 2") })
    try repository.git("checkout -qb picked")
    try repository.git("cherry-pick side")
    #expect(try repository.sql(Self.path, "SELECT title FROM notes") == ["eins", "zwei", "three"])
    try repository.git("checkout -q side")
    try repository.git("rebase -q main")
    #expect(try repository.sql(Self.path, "SELECT title FROM notes") == ["eins", "zwei", "three"])
    try repository.sql(Self.path, "UPDATE notes SET title = 'drei' WHERE id = 3")
    try repository.git("stash -q")
    try repository.sql(Self.path, "INSERT INTO notes VALUES (4, 'vier')")
    try repository.commit("four")
    try repository.git("stash pop -q")
    #expect(try repository.sql(Self.path, "SELECT title FROM notes") == ["eins", "zwei", "drei", "vier"])
    try repository.git("commit -qam three")
    try repository.git("worktree add -q ../tree main")
    try repository.shell("cd ../../tree && git merge -q --no-ff --no-edit side", in: "sub folder")
    #expect(try repository.bench.sql("tree/\(Self.path)", "SELECT count(*) FROM notes") == ["4"])
  }

  @Test("A database in WAL mode is merged, and no other file is left beside it")
  func writeAheadLog() throws {
    let repository = try Self.repository("PRAGMA journal_mode = WAL; " + Self.notes)
    try repository.diverge(
      main: { try repository.sql(Self.path, "UPDATE notes SET title = 'eins' WHERE id = 1") },
      side: { try repository.sql(Self.path, "UPDATE notes SET title = 'zwei' WHERE id = 2") })
    try repository.git("merge -q --no-edit side")
    #expect(try repository.git("status --porcelain").output.isEmpty)
    #expect(try repository.shell("ls -A").output == ".git\nsub folder\n")
    #expect(
      try repository.sql(Self.path, "PRAGMA journal_mode; SELECT title FROM notes") == ["wal", "eins", "zwei", "three"])
  }

  @Test("A file that is no database stays unmerged, with our version, as git would leave it")
  func notADatabase() throws {
    let repository = try Self.repository()
    try repository.shell("echo text > plain.sqlite")
    try repository.commit("text")
    try repository.diverge(
      main: { try repository.shell("echo ours > plain.sqlite") },
      side: { try repository.shell("echo theirs > plain.sqlite") })
    let merge = try repository.git("merge --no-edit side", status: 1)
    #expect(merge.diagnostics.contains("plain.sqlite: this is a text file, where an SQLite database was expected"))
    #expect(try repository.shell("cat plain.sqlite").output == "ours\n")
  }

  @Test("git diff and git log show rows")
  func diff() throws {
    let repository = try Self.repository()
    try repository.sql(
      Self.path,
      "UPDATE notes SET title = 'it''s' WHERE id = 2; ALTER TABLE notes ADD COLUMN b; UPDATE notes SET b = x'00' WHERE id = 1"
    )
    let diff = try repository.git("diff").output
    #expect(diff.contains("-  id=2, title='two'\n") && diff.contains("+  id=2, title='it''s', b=NULL\n"))
    #expect(diff.contains("+  id=1, title='one', b=x'00'\n"))
    try repository.commit()
    try repository.sql(Self.path, "PRAGMA journal_mode = WAL")
    try repository.git("diff")
    #expect(try repository.shell("ls -A 'sub folder' && find .. -name '*-wal'").output == "my notes.sqlite\n")
    #expect(
      try repository.git("log -p -1").output.contains("+CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, b);"))
    try repository.shell("head -c 5000 '\(Self.path)' > damaged.sqlite && echo text > text.sqlite && : > empty.sqlite")
    try repository.commit()
    #expect(try repository.git("show").output.contains("+a text file, 5 bytes, sha256 "))
  }

  @Test("install and uninstall can be repeated, and do not change other settings", arguments: ["--local", "--global"])
  func install(scope: String) throws {
    let repository = try GitRepository()
    try repository.shell("\"$BUCKIA\" git uninstall --quiet")
    let attributes = scope == "--local" ? ".git/info/attributes" : "../.config/git/attributes"
    try repository.shell("mkdir -p $(dirname \(attributes)) && echo '*.txt text' > \(attributes)")
    try repository.git("config \(scope) merge.other.driver true")
    let before = try repository.shell("cat \(attributes); git config \(scope) --list").output
    for isChanged in ["true", "false"] {
      let outcome = try repository.shell("\"$BUCKIA\" git install \(scope) --json '*.sqlite' 'a b.db'")
      #expect(outcome.output.contains("\"changed\": \(isChanged)"))
    }
    #expect(
      try repository.shell("cat \(attributes)").output
        == "*.txt text\n*.sqlite diff=buckia merge=buckia\n\"a b.db\" diff=buckia merge=buckia\n")
    #expect(try repository.git("check-attr merge 'a b.db'").output == "a b.db: merge: buckia\n")
    #expect(try repository.git("config --get merge.buckia.driver").output.hasSuffix(" git merge %O %A %B %P\n"))
    for _ in 0..<2 { try repository.shell("\"$BUCKIA\" git uninstall \(scope)") }
    #expect(try repository.shell("cat \(attributes); git config \(scope) --list").output == before)
  }

  @Test("Outside a repository, install reports the error")
  func outside() throws {
    let repository = try GitRepository()
    let outcome = try repository.shell("cd .. && \"$BUCKIA\" git install", status: 1)
    #expect(outcome.diagnostics.contains("not a git repository"))
  }
}

extension GitRepository {
  /// Like ``diverge(main:side:)``, with a branch called `second`.
  fileprivate func diverge2(main: () throws -> Void, side: () throws -> Void) throws {
    try git("branch -m side first")
    try diverge(main: main, side: side)
    try git("branch -m side second")
  }
}
