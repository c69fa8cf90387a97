#if os(Linux)
  import Foundation
  import Testing

  /// Watches every byte that the binary writes: a library that is preloaded before the system's inspects the buffers.
  @Suite("Written bytes")
  struct WrittenBytesTests {
    private let bench: Workbench
    /// The text that each shared value contains.
    private let canary = "canary-\(UUID().uuidString)"

    init() throws {
      bench = try Workbench()
      try Self.observer.write(toFile: bench.path("observer.c"), atomically: true, encoding: .utf8)
      let compiled = try bench.shell(
        "$(command -v clang || command -v cc) -shared -fPIC -O1 -o observer.so observer.c")
      try #require(compiled.status == 0, "\(compiled.diagnostics)")
      try FileManager.default.createDirectory(atPath: bench.path("temporary"), withIntermediateDirectories: true)
      for name in ["Anna", "Ben"] {
        #expect(try bench.buckia(["identity", "new", "--name", name] + home(name)).status == 0)
        let card = try bench.buckia(["identity", "show"] + home(name)).output
        try card.write(toFile: bench.path("\(name).card"), atomically: true, encoding: .utf8)
      }
      #expect(try bench.buckia(["contact", "add", "Ben.card"] + home("Anna")).status == 0)
      #expect(try bench.trust("Ben", options: home("Anna")).status == 0)
    }

    private func home(_ name: String) -> [String] { ["--home", bench.path("home of \(name)")] }

    /// Two databases with one schema. With little memory, sorting the index uses temporary files, as do the keys of the
    /// labels that are shared with the notes.
    private func makeDatabases() throws {
      let schema = """
        CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);
        CREATE TABLE label(name TEXT PRIMARY KEY, note INTEGER REFERENCES note(id)) WITHOUT ROWID
        """
      let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
      try bench.sql("ben.db", "\(schema); CREATE INDEX note_text ON note(text)")
      try bench.sql(
        "anna.db",
        """
        \(schema);
        \(rows) INSERT INTO note SELECT i, hex(randomblob(200)) || '\(canary)' FROM n;
        \(rows) INSERT INTO label SELECT hex(randomblob(80)) || '\(canary)' || i, i FROM n
        """)
      try #"{"format":1,"tables":[{"table":"note","where":"id > 0"},{"table":"label","childrenOf":["note"]}]}"#.write(
        toFile: bench.path("scope.json"), atomically: true, encoding: .utf8)
    }

    /// Runs the binary under observation.
    ///
    /// - Returns: The files into which the canary was written. Deleted files end in " (deleted)".
    private func files(of arguments: [String]) throws -> Set<String> {
      let log = bench.path("written.log")
      if FileManager.default.fileExists(atPath: log) { try FileManager.default.removeItem(atPath: log) }
      let outcome = try bench.buckia(
        arguments,
        environment: [
          "LD_PRELOAD": bench.path("observer.so"), "OBSERVED_CANARY": canary, "OBSERVED_LOG": log,
          "TMPDIR": bench.path("temporary"),
        ])
      #expect(outcome.status == 0, "\(outcome.output) \(outcome.diagnostics)")
      // The databases contain the canary in clear, so a missing log means that nothing was observed.
      let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
      return Set(lines.map(String.init))
    }

    /// The files that are neither a database nor its journal.
    private func strays(_ files: Set<String>, beside database: String) -> Set<String> {
      let allowed = ["", "-wal", "-journal"].flatMap { ["/\(database)\($0)", "/\(database)\($0) (deleted)"] }
      #expect(files.contains { $0.hasSuffix("/\(database)") }, "\(files)")
      return files.filter { file in !allowed.contains { file.hasSuffix($0) } }
    }

    @Test(arguments: [false, true])
    func `shared values are written in clear to the databases only, unless the share is unencrypted`(
      isUnencrypted: Bool
    ) throws {
      try makeDatabases()
      let share =
        ["share", "anna.db", "--to", "Ben", "--scope", "scope.json", "-o", "outbox"]
        + (isUnencrypted ? ["--unencrypted"] : []) + home("Anna")
      let apply = ["apply", "ben.db", "outbox", "--memory", "4"] + home("Ben")
      for round in 1...2 {
        if round == 2 {
          try bench.sql("anna.db", "UPDATE note SET text = hex(randomblob(200)) || '\(canary)'")
          try bench.sql("ben.db", "UPDATE note SET text = 'mine ' || id || '\(canary)' WHERE id % 100 = 0")
        }
        let sending = try strays(files(of: share), beside: "anna.db")
        #expect(try bench.names(in: "outbox").count == 1)
        let receiving = try strays(files(of: apply), beside: "ben.db")
        #expect(try bench.names(in: "outbox").isEmpty)
        guard isUnencrypted else {
          #expect(sending.isEmpty && receiving.isEmpty, "round \(round): \(sending) \(receiving)")
          continue
        }
        // Otherwise there would be nothing to observe: spools of Buckia, and temporary files of SQLite.
        #expect(sending.contains { $0.contains("/temporary/") }, "round \(round): \(sending)")
        #expect(receiving.contains { $0.contains("/temporary/") }, "round \(round): \(receiving)")
        if round == 2 { #expect(receiving.contains { $0.contains("/temporary/etilqs_") }, "\(receiving)") }
      }
      #expect(try bench.sql("ben.db", "SELECT count(*) FROM note; SELECT count(*) FROM label") == ["20000", "20000"])
      #expect(
        try bench.sql("ben.db", "SELECT count(*) > 0 FROM buckia_conflict; PRAGMA integrity_check") == ["1", "ok"])
    }

    /// Looks for a text in everything that is written, also across two writes, and logs the files.
    private static let observer = #"""
      #define _GNU_SOURCE
      #include <fcntl.h>
      #include <stdint.h>
      #include <stdio.h>
      #include <stdlib.h>
      #include <string.h>
      #include <sys/syscall.h>
      #include <sys/types.h>
      #include <sys/uio.h>
      #include <unistd.h>

      enum { FILES = 1024, LONGEST = 128 };

      /* The last bytes written to each file, and where the next ones would follow: -1 for the present place. */
      static struct { char bytes[LONGEST]; size_t count; int64_t end; } tails[FILES];
      static char busy;

      static void note(int file) {
        const char *log = getenv("OBSERVED_LOG");
        char link[64], path[4096];
        if (!log) return;
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
        if (length <= 0) { path[0] = '?'; length = 1; }
        path[length] = '\n';
        long out = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        syscall(SYS_write, out, path, (size_t)length + 1);
        syscall(SYS_close, out);
      }

      static void look(int file, const void *bytes, size_t count, int64_t offset) {
        const char *canary = getenv("OBSERVED_CANARY");
        size_t length = canary ? strlen(canary) : 0;
        if (length < 2 || length > LONGEST || count == 0 || file < 0) return;
        int found = memmem(bytes, count, canary, length) != NULL;
        if (file < FILES) {
          while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) {}
          char joined[2 * LONGEST];
          size_t before = tails[file].end == offset ? tails[file].count : 0;
          size_t after = count < length - 1 ? count : length - 1;
          memcpy(joined, tails[file].bytes, before);
          memcpy(joined + before, bytes, after);
          if (memmem(joined, before + after, canary, length)) found = 1;
          if (count >= length - 1) {
            memcpy(tails[file].bytes, (const char *)bytes + count - (length - 1), length - 1);
            tails[file].count = length - 1;
          } else {
            size_t kept = before + after < length - 1 ? before + after : length - 1;
            memcpy(tails[file].bytes, joined + before + after - kept, kept);
            tails[file].count = kept;
          }
          tails[file].end = offset < 0 ? -1 : offset + (int64_t)count;
          __atomic_clear(&busy, __ATOMIC_RELEASE);
        }
        if (found) note(file);
      }

      static void look_at_all(int file, const struct iovec *parts, int count, int64_t offset) {
        for (int i = 0; i < count; i++) {
          look(file, parts[i].iov_base, parts[i].iov_len, offset);
          if (offset >= 0) offset += (int64_t)parts[i].iov_len;
        }
      }

      ssize_t write(int file, const void *bytes, size_t count) {
        look(file, bytes, count, -1);
        return syscall(SYS_write, file, bytes, count);
      }

      ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
        look(file, bytes, count, offset);
        return syscall(SYS_pwrite64, file, bytes, count, offset);
      }

      ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
        look(file, bytes, count, offset);
        return syscall(SYS_pwrite64, file, bytes, count, offset);
      }

      ssize_t writev(int file, const struct iovec *parts, int count) {
        look_at_all(file, parts, count, -1);
        return syscall(SYS_writev, file, parts, count);
      }

      ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
        look_at_all(file, parts, count, offset);
        return syscall(SYS_pwritev, file, parts, count, offset, 0L);
      }

      ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
        look_at_all(file, parts, count, offset);
        return syscall(SYS_pwritev, file, parts, count, offset, 0L);
      }
      """#
  }
#endif
