import BuckiaKSUID
import SQLiteChangesets
import SQLiteSchemas

/// What a new diff file is to say, besides its changes. The writer adds counts, sizes and digests.
public struct DiffFileDraft {
  /// How the tables are described.
  public enum Schema: Sendable {
    /// By definitions that travel along: all tables with changes, and any others, such as new empty ones.
    case included([TableDefinition])
    /// By definitions that every reader has already, named by the digest of their `schema.json`.
    case known(ContentDigest)
    /// Not at all: columns are positional, as in a raw changeset.
    case absent
  }

  /// A file to travel along.
  public struct Attachment {
    /// Its name below `files/`.
    public var name: String
    /// Its bytes.
    public var content: ChangesetSpool

    /// Makes an attachment.
    public init(name: String, content: ChangesetSpool) {
      self.name = name
      self.content = content
    }
  }

  /// Everything the manifest says that the writer does not find out itself; its `tables`, `members` and `schema` are
  /// replaced.
  public var manifest: Manifest
  /// How the tables are described.
  public var schema: Schema
  /// Tables whose changes stand in the order of their key; all others are in their author's order.
  public var tablesInKeyOrder: Set<TableName>
  /// Tables that go by rowid. Only needed when no definitions are included.
  public var tablesByRowID: Set<TableName>
  /// Where the changes come from, when not all of them are the sender's own edits.
  public var annotations: Annotations?
  /// Files to travel along.
  public var attachments: [Attachment]

  /// Makes a draft.
  public init(
    manifest: Manifest, schema: Schema, tablesInKeyOrder: Set<TableName> = [], tablesByRowID: Set<TableName> = [],
    annotations: Annotations? = nil, attachments: [Attachment] = []
  ) {
    self.manifest = manifest
    self.schema = schema
    self.tablesInKeyOrder = tablesInKeyOrder
    self.tablesByRowID = tablesByRowID
    self.annotations = annotations
    self.attachments = attachments
  }
}
