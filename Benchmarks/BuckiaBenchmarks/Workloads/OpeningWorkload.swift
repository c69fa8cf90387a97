import BuckiaFormat
import SQLiteConnections

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ImplementationName {
  /// Opening, checking and decompressing a diff file.
  package static let opening: ImplementationName = "opening the diff file"
  /// Applying a file that was opened before.
  package static let applyingOpened: ImplementationName = "applying what was opened before"
  /// Opening and applying at the same time, with two threads.
  package static let openingAndApplying: ImplementationName = "opening and applying, overlapped"
}

extension Comparison {
  /// The cost of opening, checking and decompressing a diff file, compared with applying it.
  ///
  /// - Parameter share: The target: how much longer applying may take because of it, as a share of its time.
  package static func opening(_ shape: TableShape, rows: Int, share: Double? = nil) -> Comparison {
    Comparison(
      id: "opening-\(shape.id)",
      title: "Opening a diff file of \(Quantity.grouped(rows)) inserts, \(shape.rawValue)",
      figures: [
        Figure(.extraShare, of: .openingAndApplying, against: .applyingOpened, target: share),
        Figure(.share, of: .opening, against: .applyingOpened),
      ]
    ) { holder in
      let source = try SQLiteConnection(opening: ":memory:", as: .create)
      try source.execute(shape.definition)
      let changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: source)
      let original = try OriginalDatabase(shape, rows: 0, in: holder)
      let shipped = holder.file("shipped")
      try FileManager.default.createDirectory(atPath: shipped, withIntermediateDirectories: true)
      let file = try DiffFileDraft.write(changes.sorted, shape: shape, number: 0, into: shipped)
      return Workload(
        size: "diff file of \(Quantity.size(file.bytes)), changeset of \(changes.size)",
        implementations: [
          Implementation(.opening, isSubject: true) { _ in
            ClosureRun {
              _ = try EngineCalls.open(file.path)
              return nil
            }
          },
          Implementation(.openingAndApplying, isSubject: true) { folder in
            let inbound = try folder.copy(of: shipped, suffix: "")
            let database = try SQLiteConnection(opening: try folder.copy(of: original.path), as: .readWrite)
            let path = database.path
            return ConnectionRun(database) { _ in try EngineCalls.apply(inbound: inbound, to: path) }
          },
          Implementation(.applyingOpened) { folder in
            let opened = try EngineCalls.open(file.path)
            let database = try SQLiteConnection(opening: try folder.copy(of: original.path), as: .readWrite)
            return ConnectionRun(database) { try EngineCalls.apply(opened, to: $0) }
          },
        ])
    }
  }
}
