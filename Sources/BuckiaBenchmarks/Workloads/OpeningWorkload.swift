import BuckiaDiffFiles
import Foundation
import SQLiteConnections

extension ContenderName {
  /// Opening, checking and decompressing a diff file.
  public static let opening: ContenderName = "opening the diff file"
  /// Applying what was opened before.
  public static let applyingOpened: ContenderName = "applying what was opened before"
  /// Applying a file that is opened meanwhile, by the second core.
  public static let openingAndApplying: ContenderName = "opening and applying, overlapped"
}

extension Comparison {
  /// What it costs to open, check and decompress a diff file, beside the apply that it feeds.
  ///
  /// - Parameter share: By what share of the apply's time it may make applying longer.
  public static func opening(_ shape: TableShape, rows: Int, share: Double? = nil) -> Comparison {
    Comparison(
      id: "opening-\(shape.id)",
      title: "Opening a diff file of \(Quantity.grouped(rows)) inserts, \(shape.rawValue)",
      figures: [
        Figure(.extraShare, of: .openingAndApplying, against: .applyingOpened, target: share),
        Figure(.share, of: .opening, against: .applyingOpened),
      ]
    ) { holder in
      let author = try SQLiteConnection(opening: ":memory:", as: .create)
      try author.execute(shape.definition)
      let changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: author)
      let original = try OriginalDatabase(shape, rows: 0, in: holder)
      let shipped = holder.file("shipped")
      try FileManager.default.createDirectory(atPath: shipped, withIntermediateDirectories: true)
      let file = try DiffFileDraft.write(changes.sorted, shape: shape, number: 0, into: shipped)
      return Workload(
        size: "diff file of \(Quantity.size(file.bytes)), changeset of \(changes.size)",
        contenders: [
          Contender(.opening, isSubject: true) { _ in
            ClosureTrial {
              _ = try EngineCalls.open(file.path)
              return nil
            }
          },
          Contender(.openingAndApplying, isSubject: true) { folder in
            let inbound = try folder.copy(of: shipped, suffix: "")
            let database = try SQLiteConnection(opening: try folder.copy(of: original.path), as: .readWrite)
            let path = database.path
            return ConnectionTrial(database) { _ in try EngineCalls.apply(folder: inbound, to: path) }
          },
          Contender(.applyingOpened) { folder in
            let opened = try EngineCalls.open(file.path)
            let database = try SQLiteConnection(opening: try folder.copy(of: original.path), as: .readWrite)
            return ConnectionTrial(database) { try EngineCalls.apply(opened, to: $0) }
          },
        ])
    }
  }
}
