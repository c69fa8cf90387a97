import Buckia

extension DiffProgress {
  /// What is being compared, and how much has been.
  var line: String {
    let read = bytes > 0 ? ", \(ByteCount(Int(bytes))) of pages read" : ""
    guard !table.isEmpty else { return "Comparing pages…\(read.isEmpty ? "" : " \(ByteCount(Int(bytes))) read")" }
    return "Comparing \(table.escaped(limit: 30)): \(rows.counted("row"))\(read)"
  }
}

extension InspectionProgress {
  /// Which file is being checked, and how much of it has been read.
  var line: String {
    return "Checking \(path.fileName.escaped(limit: 40)), \(ByteCount(bytes)) of \(ByteCount(byteCount))"
  }
}

extension RewritingProgress {
  /// Which file is being checked; then what is being done, with how many changes, and how much of them has been written.
  func line(_ activity: String) -> String {
    switch self {
    case .checking(let progress): return progress.line
    case .rewriting(let changes, let bytes, let byteCount):
      let written = bytes > 0 ? ", \(ByteCount(bytes)) of \(ByteCount(byteCount)) written" : ""
      return "\(activity): \(changes.counted("change"))\(written)"
    }
  }
}

extension ApplyProgress {
  /// What is being done with which file, and how much has been done.
  var line: String {
    let verb =
      switch activity {
      case .verifying: "Verifying"
      case .applying: "Applying"
      }
    let place = fileCount > 1 ? " \((files + 1).grouped) of \(fileCount.grouped)," : ""
    var line = "\(verb)\(place) \(path.fileName.escaped(limit: 40))"
    if rows > 0 { line += ", \(rows.counted("row"))" }
    if byteCount > 0, fileCount > 1 || rows > 0 { line += ", \(ByteCount(Int(bytes))) of \(ByteCount(Int(byteCount)))" }
    return line
  }
}
