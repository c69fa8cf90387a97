import BuckiaBytes
import Buckia
import BuckiaFormat
import SQLiteConnections

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The machine that figures were measured on.
package struct Machine: Codable, Sendable {
  /// The processor's name, or its architecture.
  package let processor: String
  /// How many cores are in use.
  package let cores: Int
  /// The memory in bytes.
  package let memory: UInt64
  /// The system and its version.
  package let system: String
  /// The load average of the last minute; nil if unknown.
  package let load: Double?
  /// True if temporary files are in memory, where writing costs nothing.
  package let hasTemporaryFilesInMemory: Bool

  /// This machine.
  package static var current: Machine {
    var loads = [0.0]
    return Machine(
      processor: processorName, cores: ProcessInfo.processInfo.activeProcessorCount,
      memory: ProcessInfo.processInfo.physicalMemory, system: systemName,
      load: getloadavg(&loads, 1) == 1 ? loads[0] : nil,
      hasTemporaryFilesInMemory: isInMemory(FileManager.default.temporaryDirectory.path))
  }

  /// One line: processor, cores, memory, system.
  package var summary: String {
    let gibibytes = Double(memory) / Double(1 << 30)
    return "\(processor), \(cores) core\(cores == 1 ? "" : "s"), \(gibibytes.decimal(places: 0)) GiB, \(system)"
  }

  /// True if this program was built with optimisation; figures of a debug build mean nothing.
  package static var isOptimized: Bool {
    #if DEBUG
      false
    #else
      true
    #endif
  }

  /// The version of the SQLite library in use, such as `3.40.1`.
  package static var sqliteVersion: String { SQLiteConnection.libraryVersion }

  /// The version of the zstd library in use, such as `1.5.4`.
  package static var zstdVersion: String { DiffFileWriter.zstdVersion }

  private static var architecture: String {
    #if arch(x86_64)
      "x86_64"
    #elseif arch(arm64)
      "arm64"
    #else
      "unknown processor"
    #endif
  }

  private static var processorName: String {
    #if canImport(Darwin)
      var size = 0
      sysctlbyname("machdep.cpu.brand_string", nil, &size, nil, 0)
      var name = [UInt8](repeating: 0, count: size)
      guard size > 1, sysctlbyname("machdep.cpu.brand_string", &name, &size, nil, 0) == 0 else { return architecture }
      return String(decoding: name.prefix(size - 1), as: UTF8.self)
    #else
      // Not every architecture has this line.
      return value(of: "model name", in: "/proc/cpuinfo", separator: ":") ?? architecture
    #endif
  }

  private static var systemName: String {
    #if canImport(Darwin)
      return "macOS \(ProcessInfo.processInfo.operatingSystemVersionString)"
    #else
      var name = utsname()
      uname(&name)
      let release = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      let distribution = value(of: "PRETTY_NAME", in: "/etc/os-release", separator: "=")
      return "\(distribution ?? "Linux") (kernel \(release))"
    #endif
  }

  /// A text without spaces, tabs and quotes at its ends.
  private static func trimmed(_ text: Substring) -> String {
    let isOuter = { (character: Character) in character == " " || character == "\t" || character == "\"" }
    var text = text.drop(while: isOuter)
    while text.last.map(isOuter) == true { text.removeLast() }
    return String(text)
  }

  /// The value of the first line `name separator value` of a text file; nil when there is none.
  private static func value(of name: String, in file: String, separator: Character) -> String? {
    guard let bytes = FileManager.default.contents(atPath: file) else { return nil }
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: separator, maxSplits: 1)
      guard parts.count == 2, trimmed(parts[0]) == name else { continue }
      return trimmed(parts[1])
    }
    return nil
  }

  private static func isInMemory(_ path: String) -> Bool {
    #if canImport(Darwin)
      return false
    #else
      // Each line: device, where it is mounted, type, options. The longest mount point that leads to the path counts.
      let mounts = FileManager.default.contents(atPath: "/proc/self/mounts") ?? Data()
      var best: (place: String, type: String)?
      for line in String(decoding: mounts, as: UTF8.self).split(separator: "\n") {
        let fields = line.split(separator: " ")
        guard fields.count > 2 else { continue }
        let place = String(fields[1])
        guard place == "/" || path == place || path.hasPrefix(place + "/") else { continue }
        if place.utf8.count >= (best?.place.utf8.count ?? 0) { best = (place, String(fields[2])) }
      }
      return best.map { ["tmpfs", "ramfs"].contains($0.type) } ?? false
    #endif
  }
}
