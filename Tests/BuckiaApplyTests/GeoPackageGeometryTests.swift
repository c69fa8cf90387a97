@testable import BuckiaApply
import SQLiteChangesets
import Testing

@Suite struct GeoPackageGeometryTests {
  private func geometry(_ bytes: [UInt8]) -> GeoPackageGeometry? { bytes.withRawSpan { GeoPackageGeometry($0) } }

  private func bounds(_ bytes: [UInt8]) -> [Double]? {
    geometry(bytes)?.envelope.map { [$0.minX, $0.maxX, $0.minY, $0.maxY] }
  }

  @Test(
    "The envelope of a point is the point, in either byte order, with and without an envelope in the header",
    arguments: [true, false])
  func points(_ isLittleEndian: Bool) {
    for hasEnvelope in [true, false] {
      let blob = GeometryBlob.point(-1.5, 7.25, hasEnvelope: hasEnvelope, isLittleEndian: isLittleEndian)
      #expect(bounds(blob) == [-1.5, -1.5, 7.25, 7.25])
    }
  }

  @Test("The envelope in the header is used, whatever follows it")
  func header() {
    #expect(bounds(GeometryBlob.header(envelope: [1, 2, 3, 4]).bytes) == [1, 2, 3, 4])
    #expect(bounds(GeometryBlob.header(envelope: [1, 2, 3, 4, 5, 6]).bytes) == [1, 2, 3, 4])
    #expect(
      bounds(GeometryBlob.header(envelope: [1, 2, 3, 4, 5, 6, 7, 8], isLittleEndian: false).bytes) == [1, 2, 3, 4])
    // An extended geometry, whose body is not WKB.
    #expect(bounds(GeometryBlob.header(envelope: [1, 2, 3, 4], extraFlags: 0x20).bytes) == [1, 2, 3, 4])
  }

  @Test("An envelope that is NaN or inverted is computed from the geometry")
  func improperEnvelope() {
    for envelope in [[.nan, .nan, .nan, .nan], [2, 1, 3, 4]] as [[Double]] {
      var blob = GeometryBlob.header(envelope: envelope)
      blob.begin(1)
      blob.append(5)
      blob.append(6)
      #expect(bounds(blob.bytes) == [5, 5, 6, 6])
    }
  }

  @Test("Empty geometries are recognised by their flag and by their content")
  func empty() {
    for isFlagged in [true, false] {
      let point = geometry(GeometryBlob.emptyPoint(isFlagged: isFlagged))
      #expect(point != nil && point?.envelope == nil)
    }
    for type in [2, 3, 4, 5, 6, 7, 8, 9, 10, 1002, 2003, 3007] {
      var blob = GeometryBlob.header()
      blob.begin(type)
      blob.append(count: 0)
      let empty = geometry(blob.bytes)
      #expect(empty != nil && empty?.envelope == nil, "\(type)")
    }
    #expect(geometry(GeometryBlob.header(isEmpty: true).bytes) != nil)
  }

  @Test(
    "The envelope of lines, polygons and collections, with Z and M, contains their points", arguments: [0, 1, 2, 3])
  func shapes(_ dimension: Int) {
    let extra = [[], [100.0], [200.0], [300.0, 400.0]][dimension]
    func point(_ x: Double, _ y: Double) -> [Double] { [x, y] + extra }
    func blob(_ build: (inout GeometryBlob) -> Void) -> [UInt8] {
      var blob = GeometryBlob.header(isLittleEndian: false)
      build(&blob)
      return blob.bytes
    }
    let base = dimension * 1000
    #expect(
      bounds(
        blob {
          $0.begin(base + 2)
          $0.append(points: [point(1, 9), point(-3, 4), point(2, 5)])
        }) == [-3, 2, 4, 9])
    #expect(
      bounds(
        blob {
          $0.begin(base + 3)
          $0.append(count: 2)
          $0.append(points: [point(0, 0), point(10, 0), point(10, 10), point(0, 0)])
          $0.append(points: [point(1, 1), point(2, 1), point(2, 2), point(1, 1)])
        }) == [0, 10, 0, 10])
    #expect(
      bounds(
        blob {
          $0.begin(base + 7)
          $0.append(count: 3)
          // Each member has its own byte order.
          $0.isLittleEndian = true
          $0.begin(base + 1)
          for value in point(-7, 3) { $0.append(value) }
          $0.isLittleEndian = false
          $0.begin(base + 4)
          $0.append(count: 1)
          $0.begin(base + 1)
          for value in point(8, 11) { $0.append(value) }
          $0.begin(base + 6)
          $0.append(count: 0)
        }) == [-7, 8, 3, 11])
  }

  @Test("The envelope of an arc contains the part of its circle beyond its points")
  func arcs() throws {
    func arc(_ points: [[Double]]) throws -> [Double] {
      var blob = GeometryBlob.header()
      blob.begin(8)
      blob.append(points: points)
      return try #require(bounds(blob.bytes)).map { ($0 * 1e9).rounded() / 1e9 }
    }
    let half = 0.5.squareRoot()
    // The upper half of the unit circle.
    #expect(try arc([[-1, 0], [half, half], [1, 0]]) == [-1, 1, 0, 1])
    // A quarter, which contains no outermost point of the circle in between.
    #expect(try arc([[1, 0], [half, half], [0, 1]]) == [0, 1, 0, 1])
    // Three quarters.
    #expect(try arc([[0, 1], [-half, -half], [1, 0]]) == [-1, 1, -1, 1])
    // A whole circle, its middle point opposite.
    #expect(try arc([[2, 5], [4, 5], [2, 5]]) == [2, 4, 4, 6])
    // Points on a line, and the same point three times.
    #expect(try arc([[0, 0], [1, 1], [2, 2]]) == [0, 2, 0, 2])
    #expect(try arc([[3, 3], [3, 3], [3, 3]]) == [3, 3, 3, 3])
    // Two arcs: only every second point ends one.
    #expect(try arc([[-1, 0], [0, 1], [1, 0], [2, -1], [3, 0]]) == [-1, 3, -1, 1])
  }

  @Test("Bytes that are not a geometry are refused")
  func garbage() {
    #expect(geometry([]) == nil)
    #expect(geometry(Array("not a geometry".utf8)) == nil)
    #expect(geometry([0x47, 0x50, 0, 1, 0, 0, 0]) == nil)
    // An unknown version, an unknown type of envelope, and a truncated one.
    #expect(geometry([0x47, 0x50, 1, 1, 0, 0, 0, 0]) == nil)
    #expect(geometry([0x47, 0x50, 0, 0x0b] + [UInt8](repeating: 0, count: 80)) == nil)
    #expect(geometry(GeometryBlob.header(envelope: [1, 2, 3, 4]).bytes.dropLast()) == nil)
    // Without an envelope: no WKB, an invalid byte order, unknown types, an extended geometry.
    #expect(geometry(GeometryBlob.header().bytes) == nil)
    #expect(geometry(GeometryBlob.header().bytes + [2, 1, 0, 0, 0]) == nil)
    for type in [0, 13, 14, 18, 999, 4001, 0x2000_0001] {
      var blob = GeometryBlob.header()
      blob.begin(type)
      blob.append(count: 0)
      #expect(geometry(blob.bytes) == nil, "\(type)")
    }
    #expect(geometry(GeometryBlob.header(extraFlags: 0x20).bytes + [1, 1, 0, 0, 0]) == nil)
  }

  @Test("Counts larger than the remaining bytes are refused")
  func claims() {
    for type in [2, 3, 4, 7, 8, 3002] {
      var blob = GeometryBlob.header()
      blob.begin(type)
      blob.append(count: 0xffff_ffff)
      #expect(geometry(blob.bytes) == nil)
    }
  }

  @Test("Collections that are nested too deeply are refused")
  func depth() {
    func nested(_ depth: Int) -> [UInt8] {
      var blob = GeometryBlob.header()
      for _ in 0..<depth {
        blob.begin(7)
        blob.append(count: 1)
      }
      blob.begin(1)
      blob.append(1)
      blob.append(1)
      return blob.bytes
    }
    #expect(bounds(nested(32)) == [1, 1, 1, 1])
    #expect(geometry(nested(33)) == nil)
    #expect(geometry(nested(1_000_000)) == nil)
  }

  @Test("Changed and missing bytes cause no crash")
  func mutations() {
    var blob = GeometryBlob.header(envelope: [0, 10, 0, 10])
    blob.begin(1007)
    blob.append(count: 2)
    blob.begin(1008)
    blob.append(points: [[0, 0, 1], [5, 5, 1], [10, 0, 1]])
    blob.begin(3)
    blob.append(count: 1)
    blob.append(points: [[0, 0], [1, 1], [0, 0]])
    var found = 0
    for index in blob.bytes.indices {
      for value in [0, 1, 7, 0x7f, 0x80, 0xff] as [UInt8] {
        var changed = blob.bytes
        changed[index] = value
        // Without an envelope in the header the geometry is read.
        changed[3] = index == 3 ? value : 1
        changed.removeSubrange(8..<40)
        if geometry(changed) != nil { found += 1 }
      }
      _ = geometry(Array(blob.bytes[..<index]))
    }
    #expect(found > 0)
  }
}
