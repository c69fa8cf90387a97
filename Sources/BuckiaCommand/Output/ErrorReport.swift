import Buckia
import BuckiaBenchmarks
import BuckiaByteStreams
import BuckiaDiffFiles
import BuckiaLedger
import BuckiaSchemaPlans
import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections

/// An error as the command line tells it: with a code for programs, a sentence for people and an exit code.
struct ErrorReport {
  let code: String
  let message: String
  let path: String?
  let offset: Int?
  let status: ExitStatus

  init(code: String, message: String, path: String? = nil, offset: Int? = nil, status: ExitStatus = .failed) {
    self.code = code
    self.message = message
    self.path = path
    self.offset = offset
    self.status = status
  }

  /// A command that was not understood.
  init(usage message: String) { self.init(code: "usage", message: message, status: .usage) }

  /// Any error that a verb ended with.
  init(_ error: any Error) {
    switch error {
    case let error as BuckiaError:
      if let cause = error.cause {
        self.init(cause)
      } else {
        self.init(code: error.code.rawValue, message: error.description, path: error.context.path)
      }
    case let error as LedgerError:
      self.init(code: error.code.rawValue, message: error.description, path: error.path)
    case let error as SQLiteError:
      self.init(
        code: error.isBusy ? "busy" : "sqlite-\(error.code)", message: error.description, path: error.path,
        status: error.isBusy ? .busy : .failed)
    case let error as DiffFileError where error.code == .alreadyExists:
      self.init(
        code: error.code.rawValue, message: "\(error.path ?? "the file"): \(error.message); --force replaces it",
        path: error.path)
    case let error as DiffFileError:
      self.init(code: error.code.rawValue, message: error.description, path: error.path, offset: error.offset)
    case let error as BenchmarkError: self.init(code: error.code.rawValue, message: error.description)
    case let error as ReplicationError: self.init(code: error.code.rawValue, message: error.description)
    case let error as ChangesetError:
      self.init(code: error.code.rawValue, message: error.description, offset: error.offset)
    case let error as ByteStreamError:
      self.init(code: error.code.rawValue, message: error.description, path: error.path)
    case let error as KSUIDError: self.init(code: error.code.rawValue, message: error.description, status: .usage)
    default: self.init(code: "failed", message: String(describing: error))
    }
  }

  /// The document `--json` prints instead of a result.
  var json: JSONValue { ["version": 1, "error": details] }

  /// The error itself as `--json` has it.
  var details: JSONValue {
    [
      "code": .string(code), "message": .string(message), "path": .text(path),
      "offset": offset.map { .number($0) } ?? .null,
    ]
  }
}
