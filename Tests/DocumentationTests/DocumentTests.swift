import Buckia
import Foundation
import TestSupport
import Testing

/// The package's documents and the sources of their samples.
private struct Documents {
  private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The lines of a file.
  func lines(of path: String) throws -> [String] {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8).components(separatedBy: "\n")
  }

  /// The paths of the files in a folder with an extension.
  func files(in folder: String, _ suffix: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(folder).path)
      .filter { $0.hasSuffix(suffix) }.sorted().map { "\(folder)/\($0)" }
  }

  func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
  }

  /// The names by which links find the headings of a document, as GitHub makes them.
  func headings(of path: String) throws -> [String] {
    try lines(of: path).filter { $0.hasPrefix("#") }.map { line in
      line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
        .filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }.replacingOccurrences(of: " ", with: "-")
    }
  }

  /// The Swift files in some folders, with their text.
  func swiftFiles(in folders: [String]) throws -> [(path: String, text: String)] {
    try folders.flatMap { folder in
      let names = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)?.allObjects ?? []
      return try names.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.map { name in
        let path = "\(folder)/\(name)"
        return (path, try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8))
      }
    }
  }

  /// The documents with samples.
  func withSamples() throws -> [String] { try ["README.md"] + files(in: "Sources/Buckia/Buckia.docc", ".md") }

  /// The sources of the samples.
  func sources() throws -> [String] {
    try ["Tests/DocumentationTests", "Tests/GRDBNotes"].flatMap { try files(in: $0, ".swift") }
  }

  /// The blocks of a document in a language, without the spaces before and behind each line.
  func samples(in path: String, of language: String = "swift") throws -> [[String]] {
    var samples: [[String]] = []
    var isInside = false
    for line in try lines(of: path).map({ $0.trimmingCharacters(in: .whitespaces) }) {
      if line.hasPrefix("```") {
        isInside = line == "```\(language)"
        if isInside { samples.append([]) }
      } else if isInside {
        samples[samples.count - 1].append(line)
      }
    }
    return samples
  }
}

/// What the documents say must be what the tests run.
@Suite("Documents")
struct DocumentTests {
  private let documents = Documents()

  @Test("Every code sample is part of a source that the tests run")
  func samples() throws {
    let sources = try documents.sources().map { path in
      try documents.lines(of: path).map { $0.trimmingCharacters(in: .whitespaces) }
    }
    var count = 0
    for document in try documents.withSamples() {
      // A manifest is no part of a program: Tests/PackageRecipe builds it.
      for sample in try documents.samples(in: document) where !sample.contains("import PackageDescription") {
        count += 1
        let imports = sample.filter { $0.hasPrefix("import ") }
        let code = Array(sample.drop { $0.hasPrefix("import ") || $0.isEmpty })
        let isThere = sources.contains { source in
          imports.allSatisfy(source.contains) && !source.ranges(of: code).isEmpty
        }
        #expect(isThere, "\(document): \(sample.joined(separator: "\n"))")
      }
    }
    #expect(count > 15)
  }

  @Test func `the scope in Schemas/scope.md shares what its text says`() throws {
    func block(_ language: String) throws -> String {
      try #require(documents.samples(in: "Schemas/scope.md", of: language).first).joined(separator: "\n")
    }
    let folder = try TemporaryFolder()
    let anna = try TestDatabases.run(block("sql"), on: folder.file("anna.sqlite"))
    try TestDatabases.run(
      """
      INSERT INTO account VALUES (1, 'secret');
      INSERT INTO album VALUES (7, 'summer'), (8, 'winter');
      INSERT INTO photo VALUES (1, 'sea', 'private', 1), (2, 'snow', 'private', 1);
      INSERT INTO album_photo VALUES (7, 1), (8, 2);
      INSERT INTO comment VALUES (1, 1, NULL, 'wide', 0), (2, NULL, 1, 'yes', 0), (3, 1, NULL, 'draft', 1), (4, 2, NULL, 'cold', 0),
        (5, NULL, 2, 'no', 0), (6, NULL, 5, 'too far', 0);
      INSERT INTO tag VALUES (1, 1, 'blue'), (2, 2, 'white');
      """, on: anna)
    let ben = try TestDatabases.run("VACUUM", on: folder.file("ben.sqlite"))
    func exchange() throws {
      var options = ShareOptions()
      options.isUnencrypted = true
      let home = BuckiaHome(path: folder.file("home"))
      try DatabaseManager(anna, home: home).share(
        ShareScope(json: block("json")), to: [ShareRecipient("ben")], output: .folder(folder.file("outbox")),
        options: options)
      try DatabaseManager(ben, home: home).processInboundChanges([folder.file("outbox")])
    }
    func received(_ query: String) throws -> [String] { try TestDatabases.texts(query, on: ben) }
    try exchange()
    #expect(try received("SELECT name FROM album") == ["summer"])
    #expect(try received("SELECT * FROM photo") == ["1|sea|NULL"])
    #expect(try received("SELECT id FROM comment ORDER BY id") == ["1", "2", "5"])
    #expect(try received("SELECT word FROM tag") == ["blue"])
    #expect(try received("SELECT count(*) FROM sqlite_schema WHERE name = 'account'") == ["0"])
    // The comments of a photo follow it into the album.
    try TestDatabases.run("INSERT INTO album_photo VALUES (7, 2)", on: anna)
    try exchange()
    #expect(try received("SELECT title FROM photo ORDER BY id") == ["sea", "snow"])
    #expect(try received("SELECT id FROM comment ORDER BY id") == ["1", "2", "4", "5"])
    #expect(try received("SELECT word FROM tag ORDER BY id") == ["blue", "white"])
  }

  @Test("import Buckia is enough for every sample, or another product")
  func imports() throws {
    let allowed = [
      "Buckia", "BuckiaGRDB", "BuckiaSimulator", "BuckiaSync", "Foundation", "GRDB", "TestSupport", "Testing",
    ].map { "import \($0)" }
    for source in try documents.sources() {
      let imports = try documents.lines(of: source).map { $0.trimmingCharacters(in: .whitespaces) }
        .filter { $0.hasPrefix("import ") || $0.hasPrefix("@testable") }
      #expect(Set(imports).isSubset(of: allowed), "\(source)")
    }
  }

  @Test("Links between the documents lead to files and headings that are there")
  func links() throws {
    let paths = try ["README.md", "CONTRIBUTING.md"] + documents.files(in: "Schemas", ".md")
    for path in paths {
      let folder = path.split(separator: "/").dropLast().map(String.init)
      let text = try documents.lines(of: path).joined(separator: "\n")
      for link in text.matches(of: /\]\((?<path>[^)#:\s]*)(#(?<heading>[^)\s]*))?\)/) {
        var parts = folder
        for part in link.output.path.split(separator: "/") {
          if part == ".." { parts.removeLast() } else { parts.append(String(part)) }
        }
        let target = link.output.path.isEmpty ? path : parts.joined(separator: "/")
        #expect(documents.exists(target), "\(path) links to \(target)")
        // DocC makes other names of headings, and says itself what it does not find.
        guard let heading = link.output.heading, target.hasSuffix(".md"), !target.contains(".docc/") else { continue }
        let headings = try documents.headings(of: target)
        #expect(headings.contains(String(heading)), "\(path) links to \(target)#\(heading)")
      }
    }
  }

  @Test("Documents to begin with stay short")
  func length() throws {
    func lines(_ path: String) throws -> Int { try documents.lines(of: path).count - 1 }
    #expect(try lines("README.md") <= 110)
    #expect(try lines("Schemas/core.md") <= 500)
    #expect(try documents.lines(of: "CONTRIBUTING.md").joined(separator: "\n").utf8.count <= 12_000)
  }

  @Test("CONTRIBUTING names modules, types, folders and files that are there, and few of them")
  func contributing() throws {
    let text = try documents.lines(of: "CONTRIBUTING.md").joined(separator: "\n")
    let sources = try documents.swiftFiles(in: ["Sources", "Tests", "Benchmarks"])
    let declaration = /\b(?:struct|class|enum|protocol|actor|typealias) ([A-Za-z0-9]+)/
    let folders = sources.flatMap { $0.path.split(separator: "/").map(String.init) }
    let files = folders.filter { $0.hasSuffix(".swift") }.map { String($0.dropLast(".swift".count)) }
    let types = Set(sources.flatMap { $0.text.matches(of: declaration).map { String($0.output.1) } })
    let known = types.union(folders).union(files).union(["GRDB"])
    let names = { (text: Substring) in
      Set(text.matches(of: /`([A-Z][A-Za-z0-9+]*)(?:\.swift|\.forget)?`/).map { String($0.output.1) })
    }
    let unknown = names(text[...]).subtracting(known).filter { name in
      name.contains(where: \.isLowercase) && !["", "Sources/", "Tests/"].contains { documents.exists($0 + name) }
    }
    #expect(unknown.sorted() == [])
    let start = try #require(text.range(of: "## How to read the source")).upperBound
    let end = try #require(text.range(of: "## Where code belongs")).lowerBound
    #expect(names(text[start..<end]).intersection(types).count <= 60)
  }
}
