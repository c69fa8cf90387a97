import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// Makes values of all kinds for the columns of a table.
struct RandomValues {
  /// Literals of the CHECK constraints: what a constraint names, it mostly allows.
  private let literals: [ChangesetValue]

  /// - Parameter sql: The statement that made the table.
  init(for sql: String) {
    literals = CheckConstraints.expressions(in: sql).flatMap { $0 }.compactMap { token in
      if token.hasPrefix("'"), token.hasSuffix("'"), token.count > 1 {
        return .text(String(token.dropFirst().dropLast()).replacing("''", with: "'"))
      }
      return Int64(token).map { .integer($0) } ?? Double(token).map { .real($0) }
    }
  }

  /// A value for a column outside of the key.
  ///
  /// Most values are like no other, so that it shows where they go.
  ///
  /// - Parameters:
  ///   - affinity: What the column is for.
  ///   - isNullable: Whether it may be NULL.
  func value(for affinity: Affinity, isNullable: Bool, _ random: inout SimulationRandom) -> ChangesetValue {
    if isNullable, random.chance(0.1) { return .null }
    if !literals.isEmpty, random.chance(0.4), let literal = random.pick(literals) { return literal }
    switch affinity {
    case .integer: return integer(&random)
    case .real: return real(&random)
    case .text: return text(&random)
    case .blob: return random.chance(0.5) ? blob(&random) : any(&random)
    case .numeric: return any(&random)
    }
  }

  private func any(_ random: inout SimulationRandom) -> ChangesetValue {
    switch random.number(0...3) {
    case 0: integer(&random)
    case 1: real(&random)
    case 2: text(&random)
    default: blob(&random)
    }
  }

  private func integer(_ random: inout SimulationRandom) -> ChangesetValue {
    switch random.number(0...9) {
    case 0...2: .integer(Int64(random.number(0...9)))
    case 3: .integer(random.pick([Int64.min, .max, -1, 1 << 31, 1 << 53]) ?? 0)
    default: .integer(Int64(random.number(100...9_999_999)))
    }
  }

  private func real(_ random: inout SimulationRandom) -> ChangesetValue {
    switch random.number(0...9) {
    case 0: .real(Double(random.number(0...9)))
    case 1: .real(random.pick([-0.0, 1e300, .leastNonzeroMagnitude, .infinity, 1.0 / 3]) ?? 0)
    default: .real(Double(random.number(1...9_999_999)) / 64)
    }
  }

  private func text(_ random: inout SimulationRandom) -> ChangesetValue {
    let word = String(random.next() % 1_679_616, radix: 36)
    switch random.number(0...19) {
    case 0: return .text("")
    case 1: return .text("Ünï \(word) ✓\n'\"")
    case 2: return .text(String(repeating: "\(word) ", count: 1_000))
    case 3: return .text("\(random.number(0...9))")
    default: return .text(word)
    }
  }

  private func blob(_ random: inout SimulationRandom) -> ChangesetValue {
    let count = random.chance(0.1) ? 5_000 : random.number(0...6)
    let first = UInt8(truncatingIfNeeded: random.next())
    return .blob((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) ^ first })
  }

  /// A value for a column of a key: mostly one that others may use, too.
  func key(for column: ColumnDefinition, _ affinity: Affinity, replica: Int, _ random: inout SimulationRandom)
    -> ChangesetValue
  {
    let isShared = random.chance(0.5)
    let number = isShared ? random.number(1...6) : 1_000 * (replica + 1) + random.number(0...999)
    switch affinity {
    case .integer, .numeric: return .integer(Int64(number))
    case .real: return .real(Double(number) / 2)
    case .blob where random.chance(0.3): return .blob([UInt8(truncatingIfNeeded: number)])
    case .text, .blob:
      let name = "k\(number)"
      return .text(ASCIIName.matches(column.collation, "NOCASE") && random.chance(0.3) ? name.uppercased() : name)
    }
  }
}
