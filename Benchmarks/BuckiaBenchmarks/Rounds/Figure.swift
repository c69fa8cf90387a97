import Buckia

/// A number that compares two implementations, with its target.
package struct Figure: Codable, Sendable {
  /// How they are compared.
  package enum Kind: Codable, Sendable, Equatable {
    /// How many times as fast as the baseline: higher is better.
    case speed
    /// What share of the baseline's time: lower is better.
    case share
    /// How much longer than the baseline, as a share of its time: lower is better.
    case extraShare
    /// How many seconds more than the baseline for each of so many items: lower is better.
    case extraPerItem(items: Int)
    /// The measured value itself: lower is better. There is no baseline.
    case value
  }

  /// The implementation that the figure is about.
  package let subject: ImplementationName
  /// The implementation it is compared with; nil for `value`.
  package let baseline: ImplementationName?
  /// How they are compared.
  package let kind: Kind
  /// The number to reach (`speed`) or to stay below (all others), in the unit of the kind; nil without a target.
  package let target: Double?

  /// Makes a figure.
  package init(
    _ kind: Kind, of subject: ImplementationName = .buckia, against baseline: ImplementationName?, target: Double? = nil
  ) {
    self.kind = kind
    self.subject = subject
    self.baseline = baseline
    self.target = target
  }

  /// The number, from the implementations' medians; nil when one of them was not measured.
  package func number(_ median: (ImplementationName) -> Double?) -> Double? {
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

  /// True if a number meets the target; nil without one.
  package func isMet(by number: Double) -> Bool? {
    target.map { kind == .speed ? number >= $0 : number <= $0 }
  }

  /// A number of this kind for people: `2.31x`, `12%`, `134 µs`, `87.2 MiB`.
  package func text(_ number: Double, unit: MeasuredUnit) -> String {
    switch kind {
    case .speed: "\(number.decimal(places: number < 9.95 ? 2 : 0))x"
    case .share, .extraShare: "\((number * 100).decimal(places: 1))%"
    case .extraPerItem: "\((number * 1_000_000).decimal(places: 0)) µs"
    case .value: unit.text(number)
    }
  }

  /// The target, for people: `3.5x` or `under 12%`; nil without one.
  package func targetText(unit: MeasuredUnit) -> String? {
    target.map { target in
      switch kind {
      case .speed: "\(Self.short(target))x"
      case .share, .extraShare: "under \(Self.short(target * 100))%"
      case .extraPerItem: "under \(Self.short(target * 1_000_000)) µs"
      case .value: "under \(unit.text(target))"
      }
    }
  }

  /// A number with as many digits behind the point as it needs, at most three.
  private static func short(_ number: Double) -> String {
    var text = number.decimal(places: 3)
    while text.last == "0" { text.removeLast() }
    if text.last == "." { text.removeLast() }
    return text
  }
}

/// What is measured.
package enum MeasuredUnit: String, Codable, Sendable {
  case seconds
  case bytes
  case count

  /// A value for people: three digits, in the unit that fits.
  package func text(_ value: Double) -> String {
    switch self {
    case .seconds:
      if value < 0.001 { return "\((value * 1_000_000).threeDigits) µs" }
      return value < 1 ? "\((value * 1_000).threeDigits) ms" : "\(value.threeDigits) s"
    case .count: return Quantity.grouped(Int(value))
    case .bytes:
      return value < 16_384 ? "\(Quantity.grouped(Int(value))) bytes" : "\((value / 1_048_576).threeDigits) MiB"
    }
  }
}
