/// The bounding box of a geometry.
struct Envelope: Equatable {
  var minX = Double.infinity
  var maxX = -Double.infinity
  var minY = Double.infinity
  var maxY = -Double.infinity

  /// Whether the envelope contains a point. The envelope of an empty geometry is written as NaN.
  var isValid: Bool { minX <= maxX && minY <= maxY }

  /// Extends the envelope to a point. A point with NaN is ignored, because WKB writes an empty point as NaN.
  mutating func include(x: Double, y: Double) {
    guard !x.isNaN, !y.isNaN else { return }
    minX = min(minX, x)
    maxX = max(maxX, x)
    minY = min(minY, y)
    maxY = max(maxY, y)
  }

  /// Extends the envelope to the arc from `a` through `b` to `c`, three points that it contains already.
  ///
  /// The arc extends beyond them if it contains the leftmost, rightmost, lowest or highest point of its circle. It contains
  /// those of them that are on the same side of the chord as `b`.
  mutating func includeArc(from a: (x: Double, y: Double), _ b: (x: Double, y: Double), to c: (x: Double, y: Double)) {
    let chord = (x: c.x - a.x, y: c.y - a.y)
    let middle = (x: b.x - a.x, y: b.y - a.y)
    var center = (x: middle.x / 2, y: middle.y / 2)
    let isCircle = chord.x == 0 && chord.y == 0
    if !isCircle {
      let area = 2 * (middle.x * chord.y - middle.y * chord.x)
      let middleSquare = middle.x * middle.x + middle.y * middle.y
      let chordSquare = chord.x * chord.x + chord.y * chord.y
      center.x = (chord.y * middleSquare - middle.y * chordSquare) / area
      center.y = (middle.x * chordSquare - chord.x * middleSquare) / area
    }
    let radius = (center.x * center.x + center.y * center.y).squareRoot()
    // Three points on a line have no circle: their area is 0.
    guard radius.isFinite else { return }
    let side = chord.x * middle.y - chord.y * middle.x
    for (x, y) in [(radius, 0), (-radius, 0), (0, radius), (0, -radius)] {
      let point = (x: center.x + x, y: center.y + y)
      if isCircle || (chord.x * point.y - chord.y * point.x) * side > 0 {
        include(x: a.x + point.x, y: a.y + point.y)
      }
    }
  }
}
