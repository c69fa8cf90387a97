extension DatabaseManager.InitReport {
  /// The report as `--json` has it.
  ///
  /// - Parameters:
  ///   - clocked: The tables that were given clocks.
  ///   - keyRanges: The tables that give out keys from a range of their own.
  ///   - dataset: The shared database that it belongs to.
  ///   - remarks: What else is worth knowing.
  package func json(
    clocked: [String] = [], keyRanges: [String] = [], dataset: Dataset? = nil, remarks: [Remark] = []
  ) -> JSONValue {
    let warnings = warnings + remarks.filter { !self.warnings.contains($0) }
    return [
      "version": 1,
      "created": .bool(created),
      "createdDatabase": .bool(createdDatabase),
      "trust": .string(trust.rawValue),
      "clocks": .array(clocked.map { .string($0) }),
      "keyRanges": .array(keyRanges.map { .string($0) }),
      "dataset": .text(dataset?.description),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
    ]
  }
}

extension DoctorReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "replicates": .array(replicates.map { ["name": .string($0.name), "key": .string($0.key)] }),
      "skipped": .array(skipped.map(\.json)),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
    ]
  }
}
