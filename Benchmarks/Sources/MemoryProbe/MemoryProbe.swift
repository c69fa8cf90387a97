import Buckia
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Applies one file to a database and prints the most memory that this process had resident, in bytes.
///
/// A process of its own, because a peak never falls: where other work was done before, its peak would be told.
@main
enum MemoryProbe {
  static func main() throws {
    guard CommandLine.arguments.count == 3 else {
      FileHandle.standardError.write(Data("usage: MemoryProbe DATABASE FILE\n".utf8))
      exit(64)
    }
    let report = try DatabaseManager(CommandLine.arguments[1]).processInboundChanges([CommandLine.arguments[2]])
    if let failure = report.failure { throw failure }
    guard report.applied.count == 1 else {
      let reason = report.diffs.first?.reason ?? "nothing was applied"
      FileHandle.standardError.write(Data("\(CommandLine.arguments[2]): \(reason)\n".utf8))
      exit(1)
    }
    print(peakResidentBytes)
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
