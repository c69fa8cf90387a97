/// How forms and messages look on the pages of a server.
enum SiteStyle {
  static let text = #"""
    /*<![CDATA[*/
    .site { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0.75rem 0 0; }
    .site a[aria-current] { color: var(--text); font-weight: 600; text-decoration: none; }
    .message {
      border: 2px solid var(--line); border-inline-start-width: 0.5rem; background: var(--raised);
      padding: 0.25rem 0.75rem; margin: 0.5rem 0;
    }
    .message.good { border-color: var(--inserted); }
    .message.bad { border-color: var(--deleted); }
    .message p { overflow-wrap: anywhere; white-space: pre-wrap; }
    .news { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
    .news span:not(:empty) { font-weight: 600; }
    button, select, textarea {
      font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 0.25rem;
      padding: 0.3rem 0.75rem; min-height: 2rem;
    }
    button { cursor: pointer; }
    textarea { font: 0.9rem/1.4 ui-monospace, monospace; width: 100%; min-height: 2.5rem; resize: vertical; }
    form { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem 1rem; margin: 0.25rem 0; }
    form table, form .whole { flex: 1 0 100%; }
    .actions td { font: inherit; }
    .files { table-layout: auto; }
    .files tbody { border-bottom: 1px solid var(--line); }
    .files td { font-variant-numeric: tabular-nums; }
    .files td, .files thead th { overflow-wrap: break-word; }
    .files p { margin: 0.15rem 0; }
    .good .sign { color: var(--inserted); }
    .notable .sign { color: var(--updated); }
    .bad .sign { color: var(--deleted); }
    .choices { display: flex; flex-wrap: wrap; gap: 0.15rem 1rem; margin: 0.25rem 0; }
    .choices [aria-current] { color: var(--text); font-weight: 600; text-decoration: none; }
    @media (max-width: 40rem) {
      .files { font-size: 0.85rem; }
      .files > thead { display: none; }
      .files, .files > tbody, .files > tbody > tr { display: block; }
      .files > tbody > tr > th { display: block; }
      .files > tbody > tr > td { display: inline-block; }
      .files > tbody > tr > td[data-name]::before { content: attr(data-name) ": "; color: var(--faint); }
      button, select { max-width: 100%; }
      form table { table-layout: fixed; }
      form thead th:nth-child(2) { width: 32%; }
      form thead th:last-child { width: 43%; }
    }
    @media print { .site, .news, form, .choices { display: none; } }
    /*]]>*/
    """#
}
