import TestSupport
import Testing

@Suite("buckia init --dataset, and its effect on other commands")
struct DatasetCommandTests {
  @Test("A diff of another dataset is refused with advice; a database without a dataset joins the first")
  func text() throws {
    let bench = try Workbench()
    for name in ["recipes.db", "songs.db", "new.db"] { try bench.sql(name, "CREATE TABLE t(id TEXT PRIMARY KEY, v)") }
    try bench.sql("base.db", "CREATE TABLE t(id TEXT PRIMARY KEY, v)")
    let recipes = "0123456789abcdef0123456789abcdef"
    let songs = "fedcba98765432100123456789abcdef"
    try Transcript(
      """
      $ buckia init recipes.db --dataset \(recipes)
      The ledger tables were made.
      The database belongs to the dataset \(recipes).
      …
      $ buckia init songs.db --dataset \(songs)
      …
      $ buckia init songs.db --dataset new
      ? 1
      2> buckia: songs.db: it belongs to the dataset \(songs) already; nothing was changed. To make it part of another one, name that by its id
      $ sql recipes.db INSERT INTO t VALUES ('soup', 1)
      $ buckia diff base.db recipes.db -o soup.bdiff
      …
      $ buckia show soup.bdiff
      …
      dataset      \(recipes)
      …
      $ buckia status recipes.db
      …
      dataset      \(recipes)
      …
      """
    ).play(on: bench)
    func outcome(of database: String) throws -> [String: Any]? {
      (try bench.buckia(["apply", database, "soup.bdiff", "--json"]).json["diffs"] as? [[String: Any]])?.first
    }
    let refused = try #require(try outcome(of: "songs.db"))
    #expect(refused["state"] as? String == "rejected")
    #expect(refused["code"] as? String == "other-dataset")
    let adopted = try #require(try outcome(of: "new.db"))
    #expect((adopted["warningCodes"] as? [[String: Any]])?.map { $0["code"] as? String } == ["datasetAdopted"])
    for command in ["status", "init"] {
      #expect(try bench.buckia([command, "new.db", "--json"]).json["dataset"] as? String == recipes)
    }
    #expect(try bench.buckia(["init", "new.db", "--dataset", "nonsense"]).status == 64)
  }
}
