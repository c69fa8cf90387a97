/// Why changes could not be written as asked.
enum ChangesetProblem: Error, CustomStringConvertible {
  case twoThingsOnStandardOutput
  case noDefinitions
  case noID
  case definitionsDiffer(String, String)
  case carriesMore(String)

  /// A sentence for people.
  var description: String {
    switch self {
    case .twoThingsOnStandardOutput: "--json and -o - would both write to standard output; choose one"
    case .noDefinitions:
      "a diff file needs the definitions of its tables, and a raw changeset has none; give -o a name that does not end in .bdiff"
    case .noID: "no new id could be made"
    case .definitionsDiffer(let table, let path):
      "\(path): it describes the table \"\(table)\" differently from a file before it, so their columns cannot be joined"
    case .carriesMore(let path):
      "\(path): its changes have several authors, files travel with it, or it renames columns, which a new diff file cannot keep yet; give -o a name that does not end in .bdiff for its changes alone"
    }
  }

  /// The stable code, for programs.
  var code: String {
    switch self {
    case .twoThingsOnStandardOutput: "usage"
    case .noDefinitions: "no-definitions"
    case .noID: "no-id"
    case .definitionsDiffer: "definitions-differ"
    case .carriesMore: "carries-more"
    }
  }
}
