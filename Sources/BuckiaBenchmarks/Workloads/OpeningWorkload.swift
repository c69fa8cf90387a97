import BuckiaDiffFiles
import SQLiteConnections

extension ContenderName {
  /// Opening, checking and decompressing a diff file.
  public static let opening: ContenderName = "opening the diff file"
  /// Applying what was opened.
  public static let applyingOpened: ContenderName = "applying it"
}

extension Comparison {
  /// What it costs to open, check and decompress a diff file, beside the apply that it feeds.
  ///
  /// - Parameter share: The share of the apply's time that it may take.
  public static func opening(_ shape: TableShape, rows: Int, share: Double? = nil) -> Comparison {
    Comparison(
      id: "opening-\(shape.id)",
      title: "Opening a diff file of \(Quantity.grouped(rows)) inserts, \(shape.rawValue)",
      figures: [Figure(.share, of: .opening, against: .applyingOpened, target: share)]
    ) { holder in
      let author = try SQLiteConnection(opening: ":memory:", as: .create)
      try author.execute(shape.definition)
      let changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: author)
      let original = try OriginalDatabase(shape, rows: 0, in: holder)
      let file = try DiffFileDraft.write(changes.sorted, shape: shape, number: 0, into: holder.path)
      return Workload(
        size: "diff file of \(Quantity.size(file.bytes)), changeset of \(changes.size)",
        contenders: [
          Contender(.opening, isSubject: true) { _ in
            ClosureTrial {
              _ = try EngineCalls.open(file.path)
              return nil
            }
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
