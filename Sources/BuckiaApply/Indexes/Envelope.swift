/// The smallest rectangle around the points of a geometry.
struct Envelope: Equatable {
  var minX = Double.infinity
  var maxX = -Double.infinity
  var minY = Double.infinity
  var maxY = -Double.infinity

  /// Whether it is around a point at all. Envelopes of empty geometries are made of NaN.
  var isProper: Bool { minX <= maxX && minY <= maxY }

  /// Widens it to a point. Points with NaN are none: that is how WKB writes an empty one.
  mutating func include(x: Double, y: Double) {
    guard !x.isNaN, !y.isNaN else { return }
    minX = min(minX, x)
    maxX = max(maxX, x)
    minY = min(minY, y)
    maxY = max(maxY, y)
  }

  /// Widens it to the arc from `a` through `b` to `c`, whose points are inside already.
  ///
  /// An arc reaches beyond them where it passes the leftmost, rightmost, lowest or highest point of its circle. Such a
  /// point belongs to it when it lies on the same side of the chord as `b`.
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
    // Three points in a line have no circle: the area is nothing then.
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
