import Buckia

extension ConflictRule {
  /// What the rule says, without a full stop.
  var sentence: String {
    let columns = question.columns.map { $0.escaped(limit: 40) }.joined(separator: ", ")
    let version = answer == .local ? "keep the local version" : "take the incoming version"
    let article = question.operation == .delete ? "a" : "an"
    return
      "when \(article) \(question.operation.name) conflicts with a row of \(question.table.text.escaped(limit: 60))"
      + (columns.isEmpty ? "" : " in \(columns)") + ", \(version)"
  }

  /// The rule for people.
  func lines(style: Style) -> [String] {
    let who = decidedBy.isEmpty ? "" : " by \(decidedBy.escaped(limit: 40))"
    let origin = "Decided\(who) at #\(conflict), \(Moment(unixMilliseconds: decidedAt))"
    return style.wrapped("\(style("Rule \(id)", .strong))  \(sentence).", hanging: 4)
      + style.wrapped(style(origin, .faint), indent: 2, hanging: 4)
  }
}
