import ArgumentParser
import BuckiaBenchmarks

/// Makes calls one after the other and prints how many seconds each took, as the programs in other languages do.
///
/// It is a process of its own like theirs, so that Swift's memory is as fresh as that of the others.
struct CallCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "call", abstract: "Prints how long calls take.", shouldDisplay: false,
    subcommands: [Diff.self, Apply.self])

  /// Writes the difference of two databases into each of some files.
  struct Diff: TimedCalls {
    @Argument var older: String
    @Argument var newer: String
    @Argument var home: String
    @Argument var outputs: [String]

    var calls: [() throws -> Void] {
      outputs.map { output in { try EngineCalls.diff(from: older, to: newer, file: output, home: home) } }
    }
  }

  /// Applies a file to each of some databases.
  struct Apply: TimedCalls {
    @Argument var file: String
    @Argument var home: String
    @Argument var databases: [String]

    var calls: [() throws -> Void] {
      databases.map { database in { try EngineCalls.apply(inbound: file, to: database, home: home) } }
    }
  }

  /// Makes the calls in this process.
  ///
  /// - Returns: How many seconds each took.
  static func seconds(_ arguments: [String]) throws -> [Double] {
    let command = try parseAsRoot(arguments)
    guard let calls = command as? any TimedCalls else { throw ValidationError("There is nothing to call.") }
    return try calls.seconds()
  }
}

/// A command that makes calls and prints how many seconds each took.
protocol TimedCalls: ParsableCommand {
  /// The calls, in their order.
  var calls: [() throws -> Void] { get }
}

extension TimedCalls {
  /// Makes the calls.
  func seconds() throws -> [Double] {
    try calls.map { call in
      let began = ContinuousClock.now
      try call()
      return (ContinuousClock.now - began) / .seconds(1)
    }
  }

  func run() throws {
    for seconds in try seconds() { print(seconds) }
  }
}
