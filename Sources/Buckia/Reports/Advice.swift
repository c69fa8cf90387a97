#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What the library says, with what to do about it on the command line.
extension Remark {
  /// The remark for people.
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

  /// The remark as `--json` has it, beside its sentence among the warnings.
  package var json: JSONValue {
    ["code": .string(code.rawValue), "arguments": .array(arguments.map { .string($0) })]
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
