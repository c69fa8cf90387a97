import Buckia
import BuckiaReports

extension ConflictRule {
  /// What the rule says, without a full stop.
  var sentence: String {
    let columns = question.columns.map { $0.escaped(limit: 40) }.joined(separator: ", ")
    let version = answer == .local ? "what is here stays" : "what comes in is taken"
    return
      "where \(question.operation.name) meets another version of a row of \(question.table.text.escaped(limit: 60)) "
      + "(\(question.kind.rawValue)) and they differ in \(columns), \(version)"
  }

  /// The rule for people.
  func lines(style: Style) -> [String] {
    let who = decidedBy.isEmpty ? "" : " by \(decidedBy.escaped(limit: 40))"
    let origin = "Decided\(who) at #\(conflict), \(Moment(unixMilliseconds: decidedAt))"
    return style.wrapped("\(style("Rule \(id)", .strong))  \(sentence).", hanging: 4)
      + style.wrapped(style(origin, .faint), indent: 2, hanging: 4)
  }
}
