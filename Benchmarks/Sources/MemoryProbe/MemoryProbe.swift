import Buckia
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Applies one file to a database, or compares two databases, and prints the most memory that this process had resident, in bytes.
///
/// A process of its own, because a peak never falls: where other work was done before, its peak would be told.
@main
enum MemoryProbe {
  static func main() throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    switch (arguments.first, arguments.count) {
    case ("apply", 3): try apply(arguments[2], to: arguments[1])
    case ("diff", 5): try compare(arguments[1], arguments[2], file: arguments[3], home: arguments[4])
    default:
      fail("usage: MemoryProbe apply DATABASE FILE | diff OLDER NEWER FILE HOME", status: 64)
    }
    print(peakResidentBytes)
  }

  private static func apply(_ file: String, to database: String) throws {
    let report = try DatabaseManager(database).processInboundChanges([file])
    if let failure = report.failure { throw failure }
    guard report.applied.count == 1 else {
      fail("\(file): \(report.diffs.first?.reason ?? "nothing was applied")", status: 1)
    }
  }

  private static func compare(_ older: String, _ newer: String, file: String, home: String) throws {
    let report = try DatabaseManager.createDatabaseDiff(
      from: older, to: newer, output: .file(file, replacing: false), home: BuckiaHome(path: home))
    guard report.path != nil else { fail("\(older) and \(newer) are equal", status: 1) }
  }

  private static func fail(_ message: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
  }

  /// The most memory that was resident: pages of mapped files count, too.
  ///
  /// On Linux `getrusage` would tell what the starting process had, if that was more: the number lives on when a process
  /// becomes another program. `VmHWM` belongs to the program's own memory (proc(5)).
  private static var peakResidentBytes: Int {
    #if canImport(Darwin)
      var usage = rusage()
      getrusage(RUSAGE_SELF, &usage)
      return usage.ru_maxrss
    #else
      let status = FileManager.default.contents(atPath: "/proc/self/status") ?? Data()
      for line in String(decoding: status, as: UTF8.self).split(separator: "\n") where line.hasPrefix("VmHWM:") {
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) << 10
      }
      return 0
    #endif
  }
}
