import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// The contents of a new diff file besides its changes. The writer adds counts, sizes and digests.
package struct DiffFileDraft {
  /// How the tables are described.
  package enum Schema: Sendable {
    /// By definitions that travel along: all tables with changes, and any others, such as new empty ones.
    case included([TableDefinition])
    /// By definitions that every reader has already, identified by the digest of their `schema.json`.
    case known(ContentDigest)
    /// Not at all: columns are positional, as in a raw changeset.
    case absent
  }

  /// A file to travel along.
  package struct Attachment {
    /// Its name below `files/`.
    package var name: String
    /// Its bytes.
    package var content: TemporaryBuffer

    /// Makes an attachment.
    package init(name: String, content: TemporaryBuffer) {
      self.name = name
      self.content = content
    }
  }

  /// The manifest; the writer fills in `tables`, `members` and `schema`.
  package var manifest: Manifest
  /// How the tables are described.
  package var schema: Schema
  /// The author's whole schema as SQL, to travel with included definitions; nil where it does not.
  package var author: AuthorSchema?
  /// Tables whose changes stand in the order of their key; all others are in their author's order.
  package var tablesInKeyOrder: Set<TableName>
  /// Tables that go by rowid. Only needed when no definitions are included.
  package var tablesByRowID: Set<TableName>
  /// Where the changes come from, when not all of them are the sender's own edits.
  package var annotations: Annotations?
  /// Files to travel along.
  package var attachments: [Attachment]

  /// Makes a draft.
  package init(
    manifest: Manifest, schema: Schema, author: AuthorSchema? = nil, tablesInKeyOrder: Set<TableName> = [],
    tablesByRowID: Set<TableName> = [],
    annotations: Annotations? = nil, attachments: [Attachment] = []
  ) {
    self.manifest = manifest
    self.schema = schema
    self.author = author
    self.tablesInKeyOrder = tablesInKeyOrder
    self.tablesByRowID = tablesByRowID
    self.annotations = annotations
    self.attachments = attachments
  }
}
