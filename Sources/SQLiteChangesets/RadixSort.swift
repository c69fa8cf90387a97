/// What can be sorted by 64 bits that say most of its order.
protocol RadixKeyed {
  /// Smaller bits belong to what comes first; equal bits say nothing.
  var prefix: UInt64 { get }
}

extension Array where Element: RadixKeyed {
  /// How many bits each pass sorts by.
  private static var digitBits: Int { 11 }

  /// Sorts by prefix, then by `areInOrder` among those whose prefixes are equal.
  ///
  /// Takes time in proportion to the elements where prefixes differ, and a second array of their size. Elements that are
  /// equal in both stay in their order.
  ///
  /// - Parameter order: Compares two elements: negative, zero or positive.
  mutating func radixSort(thenBy order: (Element, Element) -> Int) {
    guard count > 1 else { return }
    sortByPrefix()
    var start = 0
    for index in indices {
      let isLast = index + 1 == count
      if !isLast, self[index + 1].prefix == self[start].prefix { continue }
      if index > start { settleTies(start..<(index + 1), by: order) }
      start = index + 1
    }
  }

  private mutating func settleTies(_ range: Range<Int>, by order: (Element, Element) -> Int) {
    // Most of the time they stand in order already: one row changed once, or keys that arrive sorted.
    var isSorted = true
    for index in range.dropFirst() where order(self[index - 1], self[index]) > 0 {
      isSorted = false
      break
    }
    if isSorted { return }
    let places = range.sorted { one, other in
      let order = order(self[one], self[other])
      return order != 0 ? order < 0 : one < other
    }
    let sorted = places.map { self[$0] }
    replaceSubrange(range, with: sorted)
  }

  /// Least significant digit first: each pass is stable, so the last one leaves all of them in order. Digits that are the
  /// same everywhere, as most are in small integers, cost no pass.
  private mutating func sortByPrefix() {
    var different: UInt64 = 0
    var isSorted = true
    for index in indices.dropFirst() {
      different |= self[index].prefix ^ self[0].prefix
      if self[index - 1].prefix > self[index].prefix { isSorted = false }
    }
    if isSorted { return }
    let digits = 1 << Self.digitBits
    var other = self
    var shift = 0
    while shift < 64 {
      defer { shift += Self.digitBits }
      let mask = UInt64(digits - 1)
      guard (different >> UInt64(shift)) & mask != 0 else { continue }
      var places = [Int](repeating: 0, count: digits)
      for element in self { places[Int((element.prefix >> UInt64(shift)) & mask)] += 1 }
      var next = 0
      for digit in places.indices { (places[digit], next) = (next, next + places[digit]) }
      withUnsafeBufferPointer { source in
        other.withUnsafeMutableBufferPointer { target in
          // Sound: the places of all digits add up to the count, so every index is one of the target's.
          for element in source {
            let digit = Int((element.prefix >> UInt64(shift)) & mask)
            target[places[digit]] = element
            places[digit] += 1
          }
        }
      }
      swap(&self, &other)
    }
  }
}
