import TestSupport

extension [UInt8] {
  /// The bytes of a database file, some of them changed, half of these where pages have their headers; now and then
  /// without its end.
  func damaged(pageSize: Int, _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = self
    for _ in 0..<Int.random(in: 1...12, using: &random) {
      let page = Int.random(in: 0..<bytes.count / pageSize, using: &random)
      let place =
        random.oneIn(2) ? Int.random(in: 0..<24, using: &random) : Int.random(in: 0..<pageSize, using: &random)
      bytes[page * pageSize + place] = UInt8.random(in: 0...255, using: &random)
    }
    if random.oneIn(10) { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random)) }
    return bytes
  }
}
