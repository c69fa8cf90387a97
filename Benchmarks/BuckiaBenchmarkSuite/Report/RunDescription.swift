import BuckiaBenchmarks
import Foundation

/// Where, when and with which versions a run was made.
struct RunDescription {
  let machine: Machine
  let rows: Int
  let swift: String?
  let commit: String?
  let load: Double?
  let date: Date

  init(
    records: [Record], swift: String?, commit: String?, load: Double?, machine: Machine = .current, date: Date = Date()
  ) {
    self.machine = machine
    self.date = date
    rows = records.map(\.rows).max() ?? 0
    self.swift = swift
    self.commit = commit
    self.load = load
  }

  /// True if the run had the size that the targets are meant for.
  var isFull: Bool { rows == Record.fullRows }

  /// The day, in UTC.
  var day: String {
    var style = Date.ISO8601FormatStyle(timeZone: .gmt)
    style = style.year().month().day()
    return date.formatted(style)
  }

  /// True if other programs were running, which makes the figures less reliable.
  var isBusy: Bool { load.map { $0 > 0.5 * Double(machine.cores) } ?? false }

  /// The facts, as rows of two columns.
  var facts: [(String, String)] {
    var facts = [
      ("date", day), ("machine", machine.processor), ("cores", "\(machine.cores)"),
      ("memory", String(format: "%.0f GiB", Double(machine.memory) / Double(1 << 30))), ("system", machine.system),
      ("SQLite", Machine.sqliteVersion), ("zstd", Machine.zstdVersion),
    ]
    if let swift { facts.append(("Swift", "\(swift), release build")) }
    if let commit { facts.append(("Buckia", "commit \(commit)")) }
    if let load { facts.append(("load before the run", String(format: "%.2f", load))) }
    if machine.hasTemporaryFilesInMemory { facts.append(("temporary files", "in memory: the disk was not measured")) }
    return facts
  }
}
