import ArgumentParser
import Buckia

/// A word that stands where a verb should, and is none.
enum UnknownVerb {
  /// Makes sure that the arguments begin with a verb, and with one of its own where it has some.
  ///
  /// - Throws: `ValidationError` with the verb that was meant, where one is written much like it.
  static func refuse(in arguments: [String]) throws {
    var verbs = RootCommand.configuration.subcommands
    for argument in arguments {
      guard !verbs.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return }
      let names = verbs.map { verb in verb.configuration.commandName ?? "" }
      guard let place = names.firstIndex(of: argument) else {
        throw ValidationError(message(for: argument, among: names))
      }
      verbs = verbs[place].configuration.subcommands
    }
  }

  private static func message(for word: String, among verbs: [String]) -> String {
    let nearest = verbs.map { (verb: $0, distance: distance(from: word, to: $0)) }.min { $0.distance < $1.distance }
    let refusal = "There is no verb '\(word.escaped(limit: 40))'."
    guard let nearest, nearest.distance <= max(1, nearest.verb.count / 3) else {
      return "\(refusal) These are: \(verbs.joined(separator: ", "))."
    }
    return "\(refusal) Did you mean '\(nearest.verb)'?"
  }

  /// How many letters have to be inserted, deleted, changed or swapped with the next one; none for those missing at the end
  /// of a beginning of three letters or more.
  static func distance(from word: String, to verb: String) -> Int {
    let word = Array(word.prefix(40).lowercased())
    let verb = Array(verb)
    if word.count >= 3, verb.starts(with: word) { return 0 }
    var before: [Int] = []
    var last = Array(0...verb.count)
    for (row, letter) in word.enumerated() {
      var next = [row + 1]
      for (column, other) in verb.enumerated() {
        var least = min(last[column + 1], next[column]) + 1
        least = min(least, last[column] + (letter == other ? 0 : 1))
        if row > 0, column > 0, letter == verb[column - 1], word[row - 1] == other {
          least = min(least, before[column - 1] + 1)
        }
        next.append(least)
      }
      (before, last) = (last, next)
    }
    return last[verb.count]
  }
}
