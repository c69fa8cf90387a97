import Buckia

/// Settles files of the inbound folders as a form says.
struct InboxActions {
  let database: ServedDatabase
  let addresses: SiteAddresses

  /// What can be done about a file, or a folder.
  private enum Action: String {
    case apply
    /// It is only said what would happen.
    case tryOnly = "try"
    case setAside = "set-aside"
  }

  /// Settles a file, or a folder.
  ///
  /// - Parameters:
  ///   - folder: The folder.
  ///   - name: The file's name; nil for all that are in the folder.
  ///   - action: What to do.
  /// - Returns: What has come of it.
  func act(_ folder: InboundFolder?, _ name: String?, _ action: String?) -> PageMessage {
    guard let folder, let action = action.flatMap({ Action(rawValue: $0) }) else {
      return PageMessage(.bad, ["The form does not say what to do; load the page again."])
    }
    guard let name else {
      return action == .setAside
        ? PageMessage(.bad, ["Only single files can be set aside."])
        : apply(folder.path, isDryRun: action == .tryOnly)
    }
    guard let file = folder.file(named: name) else {
      return PageMessage(.bad, ["\(name) is not in \(folder.path) any more. Nothing was changed."])
    }
    // A file that is named by itself stays where it is: its folder may be an outbox.
    guard action == .setAside else { return apply(file.path, isDryRun: action == .tryOnly) }
    do {
      let target = try folder.setAside(file)
      return PageMessage(.good, ["\(file.name) was set aside: it is \(target) now, and not applied with the folder."])
    } catch {
      return PageMessage(.bad, [ErrorReport(error).message])
    }
  }

  private func apply(_ path: String, isDryRun: Bool) -> PageMessage {
    var options = database.options
    options.isDryRun = isDryRun
    do {
      return try database.manager.processInboundChanges([path], options: options)
        .message(failure: nil, addresses)
    } catch let interruption as ApplyInterruption {
      return interruption.report.message(failure: ErrorReport(interruption.cause), addresses)
    } catch {
      return PageMessage(.bad, [ErrorReport(error).message, "Nothing was changed."])
    }
  }
}
