import Buckia

/// What can be done about a conflict, as forms.
struct ConflictForms {
  let addresses: SiteAddresses
  /// Where the page is that the browser comes back to.
  let query: ConflictQuery

  /// The two versions to choose from, and the way to further answers.
  func short(_ record: ConflictRecord) -> Markup {
    """
    \(choice(record, isForcing: false))
    <p><a href="\(addresses.address("conflicts/\(record.id)"))">Other values for #\(record.id)</a></p>
    """
  }

  /// All that can be answered.
  func whole(_ record: ConflictRecord) -> Markup {
    let columns = ValueForm.columns(of: record)
    guard !columns.isEmpty else { return choice(record, isForcing: true) }
    var rows: Markup = ""
    for column in columns { rows += ValueForm.row(column, of: record) }
    return """
      \(choice(record, isForcing: true))
      <form method="post" action="\(address(of: record))">
      <input type="hidden" name="seen" value="\(record.seen)" />
      <table><caption>Or values of your own, column by column</caption>
      <thead><tr><th scope="col">Column</th><th scope="col">It gets</th><th scope="col">Typed value</th></tr></thead>
      <tbody>
      \(rows)</tbody></table>
      \(Self.forcing)
      <button type="submit" name="take" value="values">Take these values</button>
      </form>
      """
  }

  private func address(of record: ConflictRecord) -> String {
    addresses.address("conflicts/\(record.id)", query.fields)
  }

  private func choice(_ record: ConflictRecord, isForcing: Bool) -> Markup {
    let remembering: Markup =
      record.kind == .data || record.kind == .conflict
      ? "<label><input type=\"checkbox\" name=\"remember\" value=\"1\" /> remember this for conflicts like it</label>\n"
      : ""
    let place: Markup = "<span class=\"unseen\"> in #\(record.id)</span>"
    return """
      <form method="post" action="\(address(of: record))">
      <input type="hidden" name="seen" value="\(record.seen)" />
      <button type="submit" name="take" value="local">\(record.mergedFile == nil ? "Keep what was here" : "Keep OURS")\(place)</button>
      <button type="submit" name="take" value="incoming">\(record.mergedFile == nil ? "Take what came" : "Take THEIRS")\(place)</button>
      \(others(record, place))\(remembering)\(isForcing ? Self.forcing : "")</form>
      """
  }

  /// What else can be answered, as the kind of conflict allows.
  private func others(_ record: ConflictRecord, _ place: Markup) -> Markup {
    var buttons: [(value: String, label: String)] = []
    if record.kind == .conflict, record.base == nil { buttons.append(("both", "Keep both")) }
    if record.kind == .constraint, !record.others.isEmpty { buttons.append(("same", "These two are the same")) }
    if record.local != nil || record.kind == .foreignKey { buttons.append(("delete", "Delete the row")) }
    var markup: Markup = ""
    for button in buttons {
      markup += "<button type=\"submit\" name=\"take\" value=\"\(button.value)\">\(button.label)\(place)</button>\n"
    }
    return markup
  }

  private static let forcing: Markup = """
    <label><input type="checkbox" name="force" value="1" /> overwrite the row even if it was changed since, or would refer to a missing row</label>

    """

  /// One answer for all conflicts that are open.
  ///
  /// - Parameters:
  ///   - count: How many these are.
  ///   - newest: The number of the newest of them: those that come meanwhile stay open.
  func all(_ count: Int, upTo newest: Int64) -> Markup {
    let address = addresses.address("conflicts", query.with { _ in }.fields)
    return """
      <section aria-labelledby="all">
      <h2 id="all">Decide all of them</h2>
      <form method="post" action="\(address)">
      <input type="hidden" name="newest" value="\(newest)" />
      <label><input type="checkbox" name="sure" value="1" required="required" /> \
      all \(count.counted("open conflict")) that \(count == 1 ? "is" : "are") listed, on all pages</label>
      <button type="submit" name="take" value="local">Keep what was here, in all</button>
      <button type="submit" name="take" value="incoming">Take what came, in all</button>
      <label><input type="checkbox" name="remember" value="1" /> remember this for conflicts like them</label>
      </form>
      </section>

      """
  }
}

extension ConflictRecord {
  /// The last resolution, as a form tells it: whether there is a later one when the form comes back.
  var seen: Int64 { resolution?.id ?? 0 }
}
