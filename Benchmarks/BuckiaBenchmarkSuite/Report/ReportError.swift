/// Why there is no report.
struct ReportError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
