import Buckia
import BuckiaBenchmarks
import Foundation
import Testing

@Suite("Rounds of a comparison")
struct ComparisonRunTests {
  private final class Diary {
    var entries: [String] = []
  }

  private func comparison(_ implementations: [Implementation], figures: [Figure] = []) -> Comparison {
    Comparison(id: "test", title: "a test", figures: figures) { _ in
      Workload(size: "small", implementations: implementations)
    }
  }

  private func implementation(
    _ name: String, content: UInt64? = 1, measures value: Double? = nil, _ work: @escaping () -> Void = {}
  ) -> Implementation {
    Implementation(ImplementationName(rawValue: name)) { _ in
      ClosureRun(content: { content }) {
        work()
        return value
      }
    }
  }

  @Test("Every implementation runs once a round, in alternating order")
  func order() throws {
    let diary = Diary()
    let names = ["a", "b", "c"]
    let run = try ComparisonRun(comparison(names.map { name in implementation(name) { diary.entries.append(name) } }))
    for _ in 0..<3 { try run.round() }
    #expect(diary.entries == ["a", "b", "c", "c", "b", "a", "a", "b", "c"])
    #expect(run.result.series.map(\.values.count) == [3, 3, 3])
    #expect(run.result.series.map(\.name.rawValue) == names)
  }

  @Test("Implementations with different resulting rows cannot be compared")
  func differentResults() throws {
    let run = try ComparisonRun(
      comparison([implementation("a"), implementation("judge", content: nil), implementation("b", content: 2)]))
    let error = try #require(throws: BuckiaError.self) { try run.round() }
    #expect(error.code == .resultsDiffer)
    #expect(error.description.contains("b arrived at other rows than a"))
  }

  @Test("Each run has an empty folder, and none is left behind")
  func folders() throws {
    let diary = Diary()
    let parent = try ScratchFolder()
    do {
      let implementation = Implementation("a") { folder in
        diary.entries.append(folder.path)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        try Data("x".utf8).write(to: URL(fileURLWithPath: folder.newFile()))
        return ClosureRun { nil }
      }
      let run = try ComparisonRun(comparison([implementation]), in: parent)
      for _ in 0..<3 { try run.round() }
    }
    #expect(Set(diary.entries).count == 3)
    #expect(try FileManager.default.contentsOfDirectory(atPath: parent.path).isEmpty)
  }

  @Test("Figures compare medians, and know which direction is better")
  func figures() throws {
    let figures = [
      Figure(.speed, of: "fast", against: "slow", target: 3), Figure(.share, of: "fast", against: "slow", target: 0.2),
      Figure(.extraPerItem(items: 10), of: "slow", against: "fast", target: 0.5),
      Figure(.value, of: "fast", against: nil, target: 1), Figure(.speed, of: "fast", against: "absent", target: 1),
    ]
    let implementations = [implementation("fast", measures: 2), implementation("slow", measures: 8)]
    let run = try ComparisonRun(comparison(implementations, figures: figures))
    try run.round()
    let numbers = run.result.numbers
    #expect(numbers.map(\.number) == [4, 0.25, 0.6, 2])
    #expect(numbers.map { $0.figure.isMet(by: $0.number) } == [true, false, false, false])
    #expect(numbers.map { $0.figure.text($0.number, unit: .seconds) } == ["4.00x", "25.0%", "600000 µs", "2.00 s"])
    #expect(Figure(.speed, of: "fast", against: "slow").isMet(by: 1) == nil)
  }

  @Test(
    "The median is the middle value",
    arguments: zip([[3.0], [3, 1], [5, 1, 3], [1, 100, 2, 3]], [3.0, 2, 3, 2.5]))
  func median(values: [Double], expected: Double) throws {
    let diary = Diary()
    let implementation = Implementation("a") { _ in
      ClosureRun {
        diary.entries.append("")
        return values[diary.entries.count - 1]
      }
    }
    let run = try ComparisonRun(comparison([implementation]))
    #expect(run.result.median(of: "a") == nil)
    for _ in values { try run.round() }
    #expect(run.result.median(of: "a") == expected)
    #expect(run.result.median(of: "nobody") == nil)
  }

  @Test("A measurement can be encoded and decoded")
  func coding() throws {
    let figures = [Figure(.extraPerItem(items: 3), of: "a", against: "b", target: 0.1)]
    let implementations = [implementation("a", measures: 1), implementation("b", measures: 2)]
    let run = try ComparisonRun(comparison(implementations, figures: figures))
    try run.round()
    let read = try JSONDecoder().decode(MeasuredComparison.self, from: JSONEncoder().encode(run.result))
    #expect(read.series.map(\.values) == [[1], [2]])
    #expect(read.figures[0].kind == .extraPerItem(items: 3))
    #expect(read.size == "small")
  }

  @Test(
    "Values are printed with three digits, in a suitable unit",
    arguments: [(0.000_012, "12.0 µs"), (0.0123, "12.3 ms"), (0.9, "900 ms"), (1.234, "1.23 s"), (61, "61.0 s")])
  func seconds(value: Double, text: String) {
    #expect(MeasuredUnit.seconds.text(value) == text)
  }
}
