import ArgumentParser
import Buckia

/// An amount of memory or of bytes, as people write it: `256` in MiB, or with a unit.
struct MemorySize: ExpressibleByArgument {
  let bytes: Int

  /// What applies where nothing is said.
  static let usual = MemorySize(ApplyOptions().memoryLimit)

  private static let units = ["": 20, "k": 10, "m": 20, "g": 30, "kib": 10, "mib": 20, "gib": 30]

  init(_ bytes: Int) { self.bytes = bytes }

  /// Nil when the text is no amount of at least 1 MiB.
  init?(argument: String) {
    let digits = argument.prefix { $0.isASCII && $0.isNumber }
    let unit = argument.dropFirst(digits.count).lowercased()
    guard let number = Int(digits), let shift = Self.units[unit], number <= Int.max >> shift else { return nil }
    bytes = number << shift
    guard bytes >= 1 << 20 else { return nil }
  }

  var defaultValueDescription: String { "\(bytes >> 20)" }
}
