import Foundation
import TestSupport
import Testing

/// Compares the declarations in `buckia.h` with the library.
@Suite("The header for C")
struct HeaderTests {
  /// The functions that the header declares.
  private static func declared() throws -> Set<String> {
    let pattern = /BUCKIA_API [a-z_ *]*?(buckia_[a-z_]+)\(/
    return Set(try CProgram.header.matches(of: pattern).map { String($0.1) })
  }

  @Test("The library has every function that the header declares")
  func functions() throws {
    let declared = try Self.declared()
    #expect(declared.count == (try CProgram.header.split(separator: "BUCKIA_API ").count) - 2)
    #expect(declared.isSuperset(of: ["buckia_open", "buckia_apply", "buckia_changes_next", "buckia_free"]))
    let library = try #require(dlopen(CProgram.library, RTLD_NOW | RTLD_LOCAL), "\(String(cString: dlerror()))")
    for name in declared.sorted() { #expect(dlsym(library, name) != nil, "\(name)") }
  }

  /// Compiled programs depend on these functions: removing one, or changing its parameters, needs another
  /// BUCKIA_ABI_VERSION.
  @Test("The functions of version 1 all exist")
  func firstVersion() throws {
    let first = """
      abi_version version version_text free error_status error_code error_message error_path error_json error_free
      cancellation_new cancel is_cancelled cancellation_free open open_handle open_handle_finding close set_home
      set_busy_timeout init diff share row_set apply conflicts each_conflict resolve resolve_all rules forget_rule log
      each_log_entry undo verify invert concat changes_open changes_open_bytes changes_manifest changes_next
      changes_read changes_close ksuid_new ksuid_parse call
      """
    let names = first.split(whereSeparator: \.isWhitespace).map { "buckia_\($0)" }
    #expect(Set(names).subtracting(try Self.declared()).isEmpty)
    #expect(try CProgram.header.contains("#define BUCKIA_ABI_VERSION 1\n"))
  }

  #if os(Linux)
    @Test(
      "The library built by `make library` exports these functions, and nothing else",
      .enabled(if: CProgram.hasLibrary))
    func exports() throws {
      let library = CProgram.file(".build/library/libbuckia.so")
      let lines = try CProgram.run("nm", ["-D", "--defined-only", library]).split(separator: "\n")
      #expect(Set(lines.compactMap { $0.split(separator: " ").last.map(String.init) }) == (try Self.declared()))
    }
  #endif

  @Test(
    "The header alone is valid in C99 and C++11", .disabled(if: CProgram.obstacle != nil, "\(CProgram.obstacle ?? "")"),
    arguments: [["c", "-std=c99"], ["c++", "-std=c++11"]])
  func languages(language: [String]) throws {
    let folder = try TemporaryFolder()
    let source = try folder.write(Array("#include <buckia.h>\n".utf8), to: "source")
    try CProgram.run(
      "clang",
      ["-x"] + language + [
        "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", CProgram.file("Sources/CBuckia/include"),
        source,
      ])
  }

  @Test("The samples in the article are part of the programs that the tests run")
  func samples() throws {
    func lines(_ path: String) throws -> [String] {
      try String(contentsOfFile: CProgram.file(path), encoding: .utf8).split(separator: "\n").map {
        $0.trimmingCharacters(in: .whitespaces)
      }
    }
    let programs = try ["notes", "exchange"].map {
      try lines("Tests/BuckiaCTests/Programs/\($0).c").joined(separator: "\n")
    }
    let article = try lines("Sources/Buckia/Buckia.docc/UsingFromC.md")
    let samples = article.split(whereSeparator: { $0.hasPrefix("```") && $0 != "```c" })
      .compactMap { part in part.firstIndex(of: "```c").map { part[(part.index(after: $0))...].joined(separator: "\n") }
      }
    #expect(samples.count >= 3)
    for sample in samples { #expect(programs.contains { $0.contains(sample) }, "\(sample)") }
  }
}
