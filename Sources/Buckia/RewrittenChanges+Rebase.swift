import SQLiteChangesets

extension RewrittenChanges {
  /// The changes of a file, rebased onto those of others: what they are where the others have been applied before.
  ///
  /// All were made from the same state. Rows are merged by column; where the two contradict each other, the policy decides, and the
  /// conflict is in ``rebase``. If the others are applied to that state and then the result, no conflict is met.
  ///
  /// ```swift
  /// let options = RebaseOptions(policy: .takeIncoming, remapsKeys: true)
  /// let changes = try RewrittenChanges(rebasing: "mine.bdiff", onto: ["theirs.bdiff"], options: options)
  /// for conflict in changes.rebase?.conflicts ?? [] { print(conflict.table, conflict.kind.rawValue) }
  /// ```
  ///
  /// - Parameters:
  ///   - local: The file with the changes to rebase.
  ///   - incoming: The files that are applied before it, in their order.
  ///   - options: Who wins, and what is known of the tables.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Throws: `BuckiaError` when a file is missing, encrypted or not entirely in order, when one holds a patchset, which has no old values,
  ///   when two files describe one table differently, or the database with the definitions cannot be read; whatever `poll` throws.
  public init(
    rebasing local: String, onto incoming: [String], options: RebaseOptions = RebaseOptions(),
    poll: @escaping () throws -> Void = {}
  ) throws {
    try self.init(rebasing: .path(local), onto: incoming.map { .path($0) }, options: options, poll: poll)
  }

  /// The same for files, and bytes that came without one.
  package init(
    rebasing local: InboundSource, onto incoming: [InboundSource], options: RebaseOptions, progress: Progress? = nil,
    poll: @escaping () throws -> Void = {}
  ) throws {
    var outcome: (report: RebaseReport, remarks: [Remark])?
    try self.init([local] + incoming, keepingSchema: true, progress, poll) { inputs, output, poll in
      let definitions = try RebaseDefinitions(of: inputs, database: options.schema)
      let tables = definitions.rebaseTables
      let others = output.makeEmpty()
      try Changesets.concatenate(inputs.dropFirst().map(\.changeset), into: others, poll: poll)
      var mine = inputs[0].changeset
      var remapped: [RemappedKey] = []
      if options.remapsKeys {
        let renumbered = output.makeEmpty()
        remapped = try Changesets.remapKeys(
          of: mine, inUseBy: others, definitions: tables, into: renumbered, poll: poll)
        mine = renumbered
      }
      let conflicts = try Changesets.rebase(
        mine, onto: others, options.policy, definitions: tables, into: output, poll: poll)
      outcome = (
        RebaseReport(options, conflicts, remapped, definitions),
        definitions.remarks(remapped: remapped, remapsKeys: options.remapsKeys)
      )
      let summary = try ChangesetSummary.of(output, poll: poll)
      return (summary.tables.map { ChangesetReport.Table($0) }, inKeyOrder: [])
    }
    rebase = outcome?.report
    remarks += outcome?.remarks ?? []
  }
}
