/// Who wins where local and incoming changes of a row contradict each other.
public enum RebasePolicy: String, Sendable, CaseIterable {
  /// The local change is made anyway.
  case keepLocal = "keep-local"
  /// The incoming change stands, and the local one is left out.
  case takeIncoming = "take-incoming"
}
