import ArgumentParser
import Buckia

/// Where the person's own files are: for verbs that make ids or use an identity.
struct HomeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The folder of what belongs to you and not to a database. $BUCKIA_HOME by default, else one of the system's.",
      valueName: "folder"))
  var home: String?

  /// The folder that counts.
  var folder: BuckiaHome { home.map { BuckiaHome(path: $0) } ?? .standard }
}
