/// The words of a text that differ from another text.
struct DifferingWords {
  /// A part of the text.
  typealias Piece = (text: Substring, isDifferent: Bool)

  /// The parts of the text, in order.
  private(set) var pieces: [Piece] = []

  /// How much work a comparison may be: words of one text times words of the other.
  private static let limit = 40_000
  /// The number of letters and digits that common parts must have to be no coincidence.
  private static let leastInCommon = 3

  /// Compares a text with another one.
  ///
  /// - Parameter areCut: True if both texts are cut at their end: a last part that only one of them shows is then not
  ///   marked.
  init(of text: Substring, and other: Substring, areCut: Bool) {
    let (mine, theirs) = (Self.words(of: text), Self.words(of: other))
    guard !mine.isEmpty, !theirs.isEmpty, mine.count <= Self.limit / theirs.count else {
      add(text, isDifferent: true)
      return
    }
    var (place, otherPlace) = (0, 0)
    for run in Self.commonRuns(of: mine, and: theirs) {
      add(mine[place..<run.start], isDifferent: true)
      place = run.start + run.count
      otherPlace = run.otherStart + run.count
      add(mine[run.start..<place], isDifferent: false)
    }
    let rests = (mine[place...].joined(separator: "").utf8, theirs[otherPlace...].joined(separator: "").utf8)
    let isOnlyCut = areCut && place > 0 && (rests.0.starts(with: rests.1) || rests.1.starts(with: rests.0))
    add(mine[place...], isDifferent: !isOnlyCut)
  }

  private mutating func add(_ words: ArraySlice<Substring>, isDifferent: Bool) {
    guard let first = words.first, let last = words.last else { return }
    add(first.base[first.startIndex..<last.endIndex], isDifferent: isDifferent)
  }

  private mutating func add(_ text: Substring, isDifferent: Bool) {
    if !text.isEmpty { pieces.append((text, isDifferent)) }
  }

  /// Words, and the characters between them one by one.
  private static func words(of text: Substring) -> [Substring] {
    var words: [Substring] = []
    var place = text.startIndex
    while place < text.endIndex {
      let start = place
      if text[place].isWordCharacter {
        place = text[place...].firstIndex { !$0.isWordCharacter } ?? text.endIndex
      } else {
        place = text.index(after: place)
      }
      words.append(text[start..<place])
    }
    return words
  }

  /// Words that follow each other in both texts.
  private typealias Run = (start: Int, otherStart: Int, count: Int)

  /// The runs of a longest common subsequence, weighted by length, without coincidental ones.
  private static func commonRuns(of mine: [Substring], and theirs: [Substring]) -> [Run] {
    // Equal are texts of equal bytes, not such as only look alike.
    var numbers: [[UInt8]: Int] = [:]
    func number(_ word: Substring) -> Int {
      let bytes = Array(word.utf8)
      let number = numbers[bytes] ?? numbers.count
      numbers[bytes] = number
      return number
    }
    let (one, two) = (mine.map(number), theirs.map(number))
    let weights = mine.map { $0.first?.isWordCharacter == true ? 2 * $0.utf8.count : 1 }
    // The weight of the common part after each pair of positions.
    let width = two.count + 1
    var weight = [Int](repeating: 0, count: (one.count + 1) * width)
    for row in one.indices.reversed() {
      for column in two.indices.reversed() {
        let place = row * width + column
        weight[place] = max(weight[place + 1], weight[place + width])
        if one[row] == two[column] { weight[place] = max(weight[place], weights[row] + weight[place + width + 1]) }
      }
    }
    var runs: [Run] = []
    var (row, column) = (0, 0)
    while row < one.count, column < two.count {
      let place = row * width + column
      if one[row] == two[column], weight[place] == weights[row] + weight[place + width + 1] {
        if let last = runs.last, last.start + last.count == row, last.otherStart + last.count == column {
          runs[runs.count - 1].count += 1
        } else {
          runs.append((row, column, 1))
        }
        (row, column) = (row + 1, column + 1)
      } else if weight[place] == weight[place + width] {
        row += 1
      } else {
        column += 1
      }
    }
    return runs.filter { run in
      let words = mine[run.start..<run.start + run.count].filter { $0.first?.isWordCharacter == true }
      return words.reduce(0) { $0 + $1.count } >= leastInCommon
    }
  }
}

extension Character {
  /// True if a word can have it.
  var isWordCharacter: Bool { isLetter || isNumber }
}

extension String {
  /// The text in three parts: the common beginning with another text, the different part, and the common end.
  func parts(besides other: String) -> (beginning: Substring, middle: Substring, end: Substring) {
    let (mine, theirs) = (utf8, other.utf8)
    var start = mine.startIndex
    var place = theirs.startIndex
    while start < mine.endIndex, place < theirs.endIndex, mine[start] == theirs[place] {
      start = mine.index(after: start)
      place = theirs.index(after: place)
    }
    // A character is marked as a whole.
    while start > mine.startIndex, start.samePosition(in: self) == nil {
      start = mine.index(before: start)
      place = theirs.index(before: place)
    }
    var stop = mine.endIndex
    var otherStop = theirs.endIndex
    while stop > start, otherStop > place, mine[mine.index(before: stop)] == theirs[theirs.index(before: otherStop)] {
      stop = mine.index(before: stop)
      otherStop = theirs.index(before: otherStop)
    }
    while stop < mine.endIndex, stop.samePosition(in: self) == nil { stop = mine.index(after: stop) }
    return (self[..<start], self[start..<stop], self[stop...])
  }
}
