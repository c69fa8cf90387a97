import Buckia

/// Decides conflicts by a form.
extension ServedDatabase {
  /// Decides one conflict.
  ///
  /// - Returns: The result. If the conflict was decided since the page was made, nothing is changed.
  func resolve(_ number: Int64, _ form: FormFields) -> PageMessage {
    .telling {
      let answer = try answer(in: form, to: number)
      var options = ResolveOptions(
        decidedBy: decidedBy, isForced: form["force"] != nil,
        remembers: form["remember"] != nil && answer.isVersion)
      guard let seen = form["seen"].flatMap({ Int64($0) }) else {
        throw ValueForm.Refusal(description: "The form does not say what its page showed; load the page again.")
      }
      options.seenResolutions[number] = seen
      return try manager.resolve([number], taking: answer, options: options)
        .message(remembers: options.remembers, on: self)
    }
  }

  /// Decides all open conflicts of a list.
  func resolveAll(_ query: ConflictQuery, _ form: FormFields) -> PageMessage {
    .telling {
      guard form["sure"] != nil else {
        throw ValueForm.Refusal(description: "To decide all of them, tick the box that says so.")
      }
      guard let version = form["take"].flatMap({ ConflictVersion(rawValue: $0) }),
        let newest = form["newest"].flatMap({ Int64($0) })
      else { throw ValueForm.Refusal.unclear }
      var filter = query.with { $0.includesDecided = false }.filter
      filter.numbers = .min...newest
      let options = ResolveOptions(decidedBy: decidedBy, remembers: form["remember"] != nil)
      return try manager.resolve(matching: filter, taking: .version(version), options: options)
        .message(remembers: options.remembers, on: self)
    }
  }

  private func answer(in form: FormFields, to number: Int64) throws -> ConflictAnswer {
    if let version = form["take"].flatMap({ ConflictVersion(rawValue: $0) }) { return .version(version) }
    let answers: [String: ConflictAnswer] = ["both": .both, "same": .same, "delete": .deletion]
    if let answer = form["take"].flatMap({ answers[$0] }) { return answer }
    guard form["take"] == "values" else {
      throw ValueForm.Refusal.unclear
    }
    var filter = ConflictFilter()
    filter.numbers = number...number
    guard let record = try manager.conflicts(matching: filter).first else {
      throw BuckiaError(.noSuchConflict, "there is no conflict with the number \(number)")
    }
    return .values(try ValueForm.values(in: form, of: record))
  }
}

extension ConflictAnswer {
  /// True if one of the two versions is taken, and no values of one's own.
  fileprivate var isVersion: Bool { if case .version = self { true } else { false } }
}

extension ResolveReport {
  /// The result for the conflicts, for the next page.
  ///
  /// - Parameters:
  ///   - remembers: True if the answers were to be kept as rules.
  ///   - database: The database with the conflicts.
  func message(remembers: Bool, on database: ServedDatabase) -> PageMessage {
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
      (name: "See #\(conflict.id)", path: database.address("conflicts/\(conflict.id)"))
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
    var lines = ["#\(conflict.id)\(row) is not decided: \(refusal.reason)."]
    for difference in refusal.differences {
      let known = difference.known?.shown(limit: 60) ?? "nothing"
      let present = difference.present?.shown(limit: 60) ?? "no row"
      lines.append("\(difference.column): \(known) was known, \(present) is there now.")
    }
    if conflict.canBeForced { lines.append("On its own page it can be decided even so.") }
    return lines
  }
}
