import Buckia

extension ResolveReport {
  /// What has become of the conflicts, for the page that comes next.
  ///
  /// - Parameters:
  ///   - remembers: Whether the answers were to be kept as rules.
  ///   - addresses: Where the conflicts are.
  func message(remembers: Bool, _ addresses: SiteAddresses) -> PageMessage {
    let style = Style(isColored: false, width: .max)
    var lines = conflicts.count == 1 ? conflicts.flatMap(Self.lines) : [summary]
    if conflicts.count > 1 {
      lines += refused.prefix(Self.limit).flatMap(Self.lines)
      let left = counts.refused - Self.limit
      if left > 0 { lines.append("\(left.counted("more conflict")) stayed open.") }
    }
    if conflicts.isEmpty { lines = ["There are no such conflicts."] }
    if remembers { lines += ruleLines(style: style) }
    lines += violations.prefix(Self.limit).map { "Note: a row was left so that \($0)" }
    lines += warnings.prefix(Self.limit).map { "Note: \($0.shown)" }
    let isGood = refused.isEmpty && !conflicts.isEmpty
    let link = (conflicts.count == 1 ? conflicts.first : refused.first).map { conflict in
      (name: "See #\(conflict.id)", path: addresses.address("conflicts/\(conflict.id)"))
    }
    return PageMessage(isGood ? .good : .bad, lines, link: link)
  }

  private static let limit = 10

  private static func lines(of conflict: ResolvedConflict) -> [String] {
    let row =
      conflict.table.isEmpty
      ? "" : " (\(conflict.table), \(ConflictRecord.shownKey(conflict.key, label: conflict.label)))"
    guard let refusal = conflict.refusal else {
      var lines = ["#\(conflict.id)\(row) is decided. \(conflict.sentence(isDryRun: false))."]
      if !conflict.unknownColumns.isEmpty {
        lines.append("Not known, so left to their defaults: \(conflict.unknownColumns.joined(separator: ", ")).")
      }
      if !conflict.lostColumns.isEmpty {
        lines.append("Not in the table any more, so left out: \(conflict.lostColumns.joined(separator: ", ")).")
      }
      return lines
    }
    var lines = ["#\(conflict.id)\(row) stays as it is: \(refusal.reason)."]
    for difference in refusal.differences {
      let known = difference.known?.shown(limit: 60) ?? "nothing"
      let present = difference.present?.shown(limit: 60) ?? "no row"
      lines.append("\(difference.column): \(known) was known, \(present) is there now.")
    }
    if conflict.canBeForced { lines.append("On its own page it can be decided even so.") }
    return lines
  }
}
