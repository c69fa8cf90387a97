import Foundation

/// A number that compares two contenders, and what it should be.
public struct Figure: Codable, Sendable {
  /// How they are compared.
  public enum Kind: Codable, Sendable, Equatable {
    /// How many times as fast as the baseline: the more the better.
    case speed
    /// What share of the baseline's time: the less the better.
    case share
    /// How much longer than the baseline, as a share of its time: the less the better.
    case extraShare
    /// How many seconds more than the baseline for each of so many items: the less the better.
    case extraPerItem(items: Int)
    /// The measured value itself: the less the better. There is no baseline.
    case value
  }

  /// Who is judged.
  public let subject: ContenderName
  /// Who it is judged by; nil where a value stands for itself.
  public let baseline: ContenderName?
  /// How they are compared.
  public let kind: Kind
  /// What the number should be at least (`speed`) or at most, in the unit of the kind; nil where it is only told.
  public let target: Double?

  /// Makes a figure.
  public init(
    _ kind: Kind, of subject: ContenderName = .buckia, against baseline: ContenderName?, target: Double? = nil
  ) {
    self.kind = kind
    self.subject = subject
    self.baseline = baseline
    self.target = target
  }

  /// The number, from the contenders' medians; nil when one of them was not measured.
  public func number(_ median: (ContenderName) -> Double?) -> Double? {
    guard let own = median(subject) else { return nil }
    guard kind != .value else { return own }
    guard let other = baseline.flatMap(median), own > 0, other > 0 else { return nil }
    switch kind {
    case .speed: return other / own
    case .share: return own / other
    case .extraShare: return (own - other) / other
    case .extraPerItem(let items): return (own - other) / Double(max(1, items))
    case .value: return own
    }
  }

  /// Whether the number is as good as the target; nil without one.
  public func isMet(by number: Double) -> Bool? {
    target.map { kind == .speed ? number >= $0 : number <= $0 }
  }

  /// A number of this kind as people read it: `2.31x`, `12%`, `134 µs`, `87.2 MiB`.
  public func text(_ number: Double, unit: MeasuredUnit) -> String {
    switch kind {
    case .speed: String(format: number < 9.95 ? "%.2fx" : "%.0fx", number)
    case .share, .extraShare: String(format: "%.1f%%", number * 100)
    case .extraPerItem: String(format: "%.0f µs", number * 1_000_000)
    case .value: unit.text(number)
    }
  }

  /// The target as people read it: `at least 3.5x`; nil without one.
  public func targetText(unit: MeasuredUnit) -> String? {
    target.map { target in
      switch kind {
      case .speed: "\(String(format: "%g", target))x"
      case .share, .extraShare: String(format: "under %g%%", target * 100)
      case .extraPerItem: String(format: "under %g µs", target * 1_000_000)
      case .value: "under \(unit.text(target))"
      }
    }
  }
}

/// What is measured.
public enum MeasuredUnit: String, Codable, Sendable {
  case seconds
  case bytes

  /// A value as people read it: three digits, in the unit that fits.
  public func text(_ value: Double) -> String {
    switch self {
    case .seconds:
      if value < 0.001 { return Self.threeDigits(value * 1_000_000) + " µs" }
      return value < 1 ? Self.threeDigits(value * 1_000) + " ms" : Self.threeDigits(value) + " s"
    case .bytes: return Self.threeDigits(value / 1_048_576) + " MiB"
    }
  }

  private static func threeDigits(_ value: Double) -> String {
    String(format: value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f", value)
  }
}
