import Buckia
import BuckiaBenchmarks
import Foundation
import Testing

@testable import BuckiaBenchmarkSuite

@Suite("Calls from other languages")
struct HostTests {
  /// Swift's calls, in this process.
  private static func host(_ name: ImplementationName, _ call: HostCall) -> HostProgram {
    HostProgram(name) { arguments, _ in try CallCommand.seconds([call.rawValue] + arguments) }
  }

  private static func calls(_ call: HostCall, repetitions: Int, other: HostProgram) -> Comparison {
    .calls(call, rows: 20, repetitions: repetitions, target: 100) { call, _ in
      Hosts([host(.fromSwift, call), other])
    }
  }

  @Test("The calls of all hosts lead to the same rows", arguments: HostCall.allCases, [1, 3])
  func agreement(call: HostCall, repetitions: Int) throws {
    let run = try ComparisonRun(Self.calls(call, repetitions: repetitions, other: Self.host(.fromC, call)))
    for _ in 0..<2 { try run.round() }
    #expect(run.result.series.map(\.name) == [.fromSwift, .fromC])
    #expect(run.result.series.map(\.isSubject) == [false, true])
    #expect(run.result.series.allSatisfy { $0.values.count == 2 && $0.values.allSatisfy { $0 > 0 } })
    #expect(run.result.numbers.map(\.figure.subject) == [.fromC])
    #expect(run.result.notes.contains { $0.contains("a process makes 4 calls") } == (repetitions == 3))
  }

  @Test("The first of several calls does not count, and the median of the others does")
  func median() throws {
    let times: [Double] = [9, 1, 3, 2]
    let other = HostProgram(.fromC) { arguments, count in
      _ = try CallCommand.seconds([HostCall.apply.rawValue] + arguments)
      #expect(count == times.count)
      return times
    }
    let run = try ComparisonRun(Self.calls(.apply, repetitions: 3, other: other))
    try run.round()
    #expect(run.result.median(of: .fromC) == 2)
  }

  @Test("A host that does nothing is not compared", arguments: HostCall.allCases)
  func idle(call: HostCall) throws {
    let idle = HostProgram(.fromC) { _, count in Array(repeating: 0.001, count: count) }
    let run = try ComparisonRun(Self.calls(call, repetitions: 1, other: idle))
    let error = try #require(throws: BuckiaError.self) { try run.round() }
    #expect(error.code == .resultsDiffer)
    #expect(error.description.contains("\(ImplementationName.fromC)"))
  }

  @Test("A program must print the requested number of measurements", arguments: ["0.5", "0.5 x", "0.5 -1", ""])
  func printedTimes(output: String) throws {
    let echo = try #require(ChildProcess.find("echo"))
    #expect(try ChildProcess(echo, ["0.5", "9.1e-05"]).seconds(2) == [0.5, 0.000_091])
    let error = try #require(throws: BuckiaError.self) { try ChildProcess(echo, [output]).seconds(2) }
    #expect(error.code == .otherProgram)
    #expect(error.description.contains("did not say how long it took"))
  }

  @Test("Hosts that are not built or installed are left out, with a sentence")
  func missing() throws {
    let folder = try ScratchFolder()
    let hosts = try Hosts.find(for: .diff, in: folder, environment: ["BUCKIA_BENCH_LIBRARY": folder.file("library")])
    #expect(hosts.all.map(\.name) == [.fromSwift])
    for part in ["make library", "make extension", "no cc here", "no Python"] {
      #expect(hosts.notes.contains { $0.contains(part) }, "\(part)")
    }
  }
}
