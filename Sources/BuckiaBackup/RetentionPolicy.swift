import Buckia
import BuckiaBytes

/// Which points are kept.
///
/// Each rule keeps points of its own; a point that any rule keeps stays. The newest point of a history always stays.
///
/// ```swift
/// let rules = try RetentionPolicy("hourly=24,daily=30,monthly=12")
/// ```
public struct RetentionPolicy: Hashable, Sendable {
  /// The number of the newest points.
  public var last = 0
  /// The number of hours (UTC) whose newest point is kept: the last hours that have points.
  public var hourly = 0
  /// The number of days, in the same way.
  public var daily = 0
  /// The number of weeks from Monday on, in the same way.
  public var weekly = 0
  /// The number of months, in the same way.
  public var monthly = 0
  /// The number of years, in the same way.
  public var yearly = 0
  /// All points that are not older than that many days.
  public var days = 0
  /// The greatest size of the objects of the kept points in bytes; 0 for no limit. Without other rules, as many points are
  /// kept as it allows.
  public var byteLimit: Int64 = 0

  /// 24 hours, 30 days and 12 months.
  public static let usual = RetentionPolicy(hourly: 24, daily: 30, monthly: 12)

  /// Creates a policy that keeps the newest point only.
  public init() {}

  private init(hourly: Int, daily: Int, monthly: Int) {
    (self.hourly, self.daily, self.monthly) = (hourly, daily, monthly)
  }

  /// Reads rules such as `last=10,hourly=24,daily=30,weekly=8,monthly=12,yearly=5,days=7,size=10G`.
  ///
  /// - Throws: `BuckiaError` with `misuse` for other text.
  public init(_ text: String) throws {
    guard text.contains("=") else { throw Self.invalid(text[...]) }
    for rule in text.split(separator: ",") {
      let parts = rule.split(separator: "=", maxSplits: 1).map { String($0.filter { $0 != " " }) }
      guard parts.count == 2, let (number, isSize) = Self.number(parts[1]), number > 0, isSize == (parts[0] == "size")
      else { throw Self.invalid(rule) }
      switch parts[0] {
      case "last": last = Int(number)
      case "hourly": hourly = Int(number)
      case "daily": daily = Int(number)
      case "weekly": weekly = Int(number)
      case "monthly": monthly = Int(number)
      case "yearly": yearly = Int(number)
      case "days": days = Int(number)
      case "size": byteLimit = number
      default: throw Self.invalid(rule)
      }
    }
  }

  private static func invalid(_ rule: Substring) -> BuckiaError {
    BuckiaError(
      .misuse,
      "\"\(rule)\" is no rule; rules are last=N, hourly=N, daily=N, weekly=N, monthly=N, yearly=N, days=N, size=N with K, M, G or T"
    )
  }

  private static func number(_ text: String) -> (number: Int64, isSize: Bool)? {
    guard let unit = text.last, let place = "KMGT".firstIndex(of: Character(unit.uppercased())) else {
      return Int64(text).flatMap { $0 <= 1_000_000 ? ($0, false) : nil }
    }
    let shift = 10 * (1 + "KMGT".distance(from: "KMGT".startIndex, to: place))
    return Int64(text.dropLast()).flatMap { $0 <= 1_000_000 ? ($0 << shift, true) : nil }
  }

  /// The points that are kept.
  ///
  /// - Parameters:
  ///   - objects: The objects of one history, the oldest first.
  ///   - now: The present time, in milliseconds since 1970.
  func kept(of objects: [BackupObject], now: Int64) -> Set<KSUID> {
    guard let newest = objects.last?.id else { return [] }
    var kept: Set<KSUID> = [newest]
    kept.formUnion(objects.suffix(last).map(\.id))
    let oldest = now - Int64(days) * 86_400_000
    if days > 0 { kept.formUnion(objects.filter { $0.point.time >= oldest }.map(\.id)) }
    for (count, period) in [
      (hourly, { $0 / 3_600_000 }), (daily, { $0 / 86_400_000 }), (weekly, { ($0 / 86_400_000 + 3) / 7 }),
      (monthly, { Self.month(of: $0) }), (yearly, { Self.month(of: $0) / 12 }),
    ] as [(Int, (Int64) -> Int64)] {
      var periods: Set<Int64> = []
      for object in objects.reversed() where periods.count < count {
        if periods.insert(period(object.point.time)).inserted { kept.insert(object.id) }
      }
    }
    // A limit of the size comes first; without other rules it keeps as many points as it allows.
    guard byteLimit > 0 else { return kept }
    var unlimited = self
    unlimited.byteLimit = 0
    if unlimited == RetentionPolicy() { kept = Set(objects.map(\.id)) }
    var bytes: Int64 = 0
    for object in objects.reversed() where kept.contains(object.id) {
      bytes += object.byteCount
      if bytes > byteLimit, object.id != newest { kept.remove(object.id) }
    }
    return kept
  }

  /// The number of the month, from January of the year 0, in UTC.
  ///
  /// This is the algorithm of <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>.
  private static func month(of time: Int64) -> Int64 {
    let day = time / 86_400_000 + 719_468
    let era = (day >= 0 ? day : day - 146_096) / 146_097
    let dayOfEra = day - era * 146_097
    let year = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * year + year / 4 - year / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    return (year + era * 400 + (month <= 2 ? 1 : 0)) * 12 + month - 1
  }
}
