/// Where a text differs from another one: between what both begin with and what both end with.
struct DifferingPart: Equatable {
  /// What both begin with.
  let beginning: Substring
  /// What is different.
  let middle: Substring
  /// What both end with.
  let end: Substring

  /// Compares a text with another one.
  init(of text: String, and other: String) {
    let (mine, theirs) = (text.utf8, other.utf8)
    var start = mine.startIndex
    var place = theirs.startIndex
    while start < mine.endIndex, place < theirs.endIndex, mine[start] == theirs[place] {
      start = mine.index(after: start)
      place = theirs.index(after: place)
    }
    // A character is marked as a whole.
    while start > mine.startIndex, start.samePosition(in: text) == nil {
      start = mine.index(before: start)
      place = theirs.index(before: place)
    }
    var stop = mine.endIndex
    var otherStop = theirs.endIndex
    while stop > start, otherStop > place, mine[mine.index(before: stop)] == theirs[theirs.index(before: otherStop)] {
      stop = mine.index(before: stop)
      otherStop = theirs.index(before: otherStop)
    }
    while stop < mine.endIndex, stop.samePosition(in: text) == nil { stop = mine.index(after: stop) }
    beginning = text[..<start]
    middle = text[start..<stop]
    end = text[stop...]
  }
}
