import SQLiteConnections

/// The functions that the triggers of a GeoPackage's spatial indexes call.
///
/// SQLite does not have them, so each application that writes to a GeoPackage defines them. They return NULL for a value
/// that is not a geometry, and the bounds are NULL for an empty one. See OGC 12-128r18 (GeoPackage), Annex F.3.
enum GeoPackageFunctions {
  private static let bounds: [String: @Sendable (Envelope) -> Double] = [
    "st_minx": { $0.minX }, "st_maxx": { $0.maxX }, "st_miny": { $0.minY }, "st_maxy": { $0.maxY },
  ]

  /// The names of the functions, in lower case.
  static let names: Set<String> = Set(bounds.keys).union(["st_isempty"])

  /// Adds some of the functions.
  ///
  /// - Throws: `SQLiteError` when SQLite refuses one.
  static func add(_ names: Set<String>, to functions: inout SQLiteFunctions) throws(SQLiteError) {
    for name in names.sorted() {
      if name == "st_isempty" {
        try functions.add(name, argumentCount: 1) { arguments in
          guard let geometry = geometry(arguments) else { return .null }
          return .integer(geometry.envelope == nil ? 1 : 0)
        }
      } else if let bound = bounds[name] {
        try functions.add(name, argumentCount: 1) { arguments in
          guard let envelope = geometry(arguments)?.envelope else { return .null }
          return .real(bound(envelope))
        }
      }
    }
  }

  private static func geometry(_ arguments: borrowing SQLiteArguments) -> GeoPackageGeometry? {
    arguments.withBlob(at: 0) { GeoPackageGeometry($0) }
  }
}
