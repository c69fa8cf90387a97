#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The library's messages with advice for the command line.
extension Warning {
  /// The warning for people.
  package var shown: String {
    switch code {
    case .noPrimaryKey: "\(description), and `diff --keyless content` compares by what is in them"
    case .triggers: "\(description) with `apply --triggers on`"
    case .attachmentsNotUnpacked: "\(description); `tar --zstd -xf` does it"
    case .noOldValues: "\(description); `diff` makes files that have them"
    case .stateDiffers, .stateAltered: "\(description); `share --resync` does that at the sender"
    case .firstSnapshot: "\(description); `buckia snapshot` makes the first one, of a copy from before"
    case .undoNotKept: "\(description); `init --undo-size` keeps more"
    case .sentBefore: "\(description); `diff --again` does it"
    case .rowsWithoutParent:
      "\(description); `resolve --set` and `resolve --delete` do it where the row is a recorded conflict"
    default: description
    }
  }

  /// The warning as `--json` has it, beside its sentence among the warnings.
  package var json: JSONValue {
    ["code": .string(code.rawValue), "arguments": .strings(arguments)]
  }
}

extension [Warning] {
  /// The sentences for people, as `--json` has them.
  package var sentences: JSONValue { .strings(map(\.shown)) }
  /// The warnings for programs.
  package var json: JSONValue { .array(map(\.json)) }
}

extension JSONValue {
  /// A time in milliseconds since 1970; null for none.
  package static func time(_ unixMilliseconds: Int64?) -> JSONValue {
    .text(unixMilliseconds.map { UTCTime(unixMilliseconds: $0).rfc3339 })
  }
}

extension SkipReason {
  /// The reason for people.
  package var shown: String {
    switch code {
    case .newTableNeedsDefinition, .columnsNeedDefinition, .omittedColumnsNeedDefinition:
      "\(description); leave out --raw"
    default: description
    }
  }
}

extension BuckiaError {
  /// The error for people.
  package var shown: String {
    switch code {
    case .noDatabase where !FileManager.default.fileExists(atPath: context.path ?? ""):
      "\(description); `buckia init` makes a new one"
    case .untrusted: "\(description); `buckia init --trust any` allows it"
    case .alreadyExists: "\(description); --force replaces it"
    case .nothingInCommon: "\(description); --force compares them anyway"
    case .noClock: "\(description); `buckia init --clocks` gives it one"
    case .notADatabase: FileKind.refusal(of: context.path, where: "an SQLite database") ?? description
    default: description
    }
  }
}

/// An error for programs: a code, a sentence for people, and the place.
package struct FailureReport: Sendable {
  /// The kind of error: a word that stays.
  package let code: String
  /// A sentence with the cause and the advice.
  package let message: String
  /// The file that it is about.
  package let path: String?
  /// The offset in the file, in bytes.
  package let offset: Int?

  /// Puts one together.
  package init(code: String, message: String, path: String? = nil, offset: Int? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.offset = offset
  }

  /// Creates a report without advice about options, which is of no use to a program that calls the library.
  package init(_ error: BuckiaError) {
    self.init(
      code: error.code.rawValue, message: error.description, path: error.context.path, offset: error.context.offset)
  }

  /// The document that `--json` prints instead of a result.
  package var json: JSONValue { ["version": 1, "error": details] }

  /// The error itself as `--json` has it.
  package var details: JSONValue {
    [
      "code": .string(code), "message": .string(message), "path": .text(path),
      "offset": offset.map { .number($0) } ?? .null,
    ]
  }
}
