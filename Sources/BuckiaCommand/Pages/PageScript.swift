/// The script of a page: searching, and moving from change to change with the keyboard. Without it everything can still
/// be read.
///
/// It makes no markup of text, and the page's policy would not let it.
enum PageScript {
  /// The content of `<script>`.
  static let text = #"""
    /*<![CDATA[*/
    "use strict";
    (() => {
      const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
      const field = document.getElementById("query");
      const status = document.getElementById("status");
      const shortcuts = document.getElementById("shortcuts");
      const keys = document.getElementById("keys");
      const noun = document.querySelector("main").dataset.noun;
      const entries = all("tbody.entry");
      const sectionOf = (entry) => entry.closest("section");

      // Searching. Many entries are searched in pieces, to keep the page responsive.
      const pieceSize = 1000;
      let search = 0;
      const pause = () => new Promise((resolve) => setTimeout(resolve, 0));

      const find = async () => {
        search += 1;
        const own = search;
        const words = field.value.toLocaleLowerCase().split(/\s+/).filter((word) => word !== "");
        let found = 0;
        for (let place = 0; place < entries.length; place += 1) {
          if (place % pieceSize === pieceSize - 1) {
            await pause();
            if (own !== search) return;
          }
          const entry = entries[place];
          const heading = sectionOf(entry).querySelector("h2");
          const text = words.length > 0 ? `${heading.textContent} ${entry.textContent}`.toLocaleLowerCase() : "";
          entry.hidden = !words.every((word) => text.includes(word));
          if (!entry.hidden) found += 1;
        }
        for (const part of all("table.entries, details.fold, section.list")) {
          part.hidden = words.length > 0 && part.querySelector("tbody.entry:not([hidden])") === null;
        }
        for (const fold of all("details.fold")) {
          if (words.length > 0 && !fold.open) {
            fold.open = true;
            fold.dataset.opened = "search";
          } else if (words.length === 0 && fold.dataset.opened === "search") {
            fold.open = false;
            delete fold.dataset.opened;
          }
        }
        status.textContent = words.length > 0 ? `${found} of ${entries.length} ${noun} on this page match.` : "";
        const first = shownFrom(0, 1);
        if (first && current.hidden) makeCurrent(first);
      };

      let timer = 0;
      field.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(find, 150);
      });

      // Going from entry to entry. One of them is reached by the Tab key; the arrow keys go on from there.
      let current = entries[0];
      const jumpIn = (entry) => entry.querySelector("a.jump");

      const makeCurrent = (entry) => {
        jumpIn(current).tabIndex = -1;
        current = entry;
        jumpIn(current).tabIndex = 0;
      };

      const goTo = (entry) => {
        if (!entry) return;
        const fold = entry.closest("details");
        if (fold) fold.open = true;
        makeCurrent(entry);
        jumpIn(entry).focus();
      };

      // The first entry that is shown and wanted, from a place on, forwards or backwards.
      const shownFrom = (start, step, isWanted = () => true) => {
        for (let place = start; place >= 0 && place < entries.length; place += step) {
          if (!entries[place].hidden && isWanted(entries[place])) return entries[place];
        }
        return undefined;
      };

      const move = (from, key) => {
        const place = entries.indexOf(from);
        const isElsewhere = (entry) => sectionOf(entry) !== sectionOf(from);
        switch (key) {
          case "ArrowDown": return shownFrom(place + 1, 1);
          case "ArrowUp": return shownFrom(place - 1, -1);
          case "Home": return shownFrom(0, 1);
          case "End": return shownFrom(entries.length - 1, -1);
          case "ArrowRight": return shownFrom(place + 1, 1, isElsewhere);
          case "ArrowLeft": {
            const before = shownFrom(place - 1, -1, isElsewhere);
            return before && shownFrom(0, 1, (entry) => sectionOf(entry) === sectionOf(before));
          }
          default: return undefined;
        }
      };

      const moves = ["ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft", "Home", "End"];

      document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
        const target = event.target instanceof Element ? event.target : document.body;
        // Keys typed into a form are text, not commands.
        if (target !== field && target.closest("textarea, select, form input")) return;
        const jump = target.closest("a.jump");
        if (jump && moves.includes(event.key)) {
          event.preventDefault();
          goTo(move(jump.closest("tbody"), event.key));
        } else if (target === field) {
          if (event.key === "Escape") {
            field.value = "";
            find();
          } else if (event.key === "Enter") {
            event.preventDefault();
            clearTimeout(timer);
            find().then(() => goTo(shownFrom(0, 1)));
          }
        } else if (shortcuts.checked && event.key === "/") {
          event.preventDefault();
          field.focus();
          field.select();
        } else if (shortcuts.checked && event.key === "?") {
          event.preventDefault();
          keys.open = !keys.open;
          keys.querySelector("summary").focus();
        }
      });

      // Folded entries are shown for a link to them, and on paper.
      const showLinked = () => {
        const linked = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
        if (linked && linked.matches("a.jump")) goTo(linked.closest("tbody"));
      };
      addEventListener("hashchange", showLinked);
      addEventListener("beforeprint", () => {
        for (const fold of all("details.fold:not([open])")) {
          fold.open = true;
          fold.dataset.opened = "print";
        }
      });
      addEventListener("afterprint", () => {
        for (const fold of all('details.fold[data-opened="print"]')) {
          fold.open = false;
          delete fold.dataset.opened;
        }
      });

      for (const part of all(".scripted")) part.hidden = false;
      showLinked();
    })();
    /*]]>*/
    """#
}

/// The script for the pages of a server: it detects changes of the shown state, and keeps typed text.
extension PageScript {
  static let siteText = #"""
    /*<![CDATA[*/
    (() => {
      const main = document.querySelector("main");
      const news = document.getElementById("news");
      const reload = document.getElementById("reload");
      const { state, version } = main.dataset;

      // The result of the last action is read out, and shown once: a reload does not show it again.
      const message = document.getElementById("message");
      if (message) {
        message.focus();
        const here = new URL(location.href);
        here.searchParams.delete("told");
        history.replaceState(null, "", here.href);
      }

      // A page without input reloads itself when something has changed. On any other page the person decides.
      let isTouched = false;
      for (const kind of ["keydown", "pointerdown", "input", "wheel", "touchstart"]) {
        addEventListener(kind, () => { isTouched = true; }, { passive: true });
      }
      const tell = (text, isOffered) => {
        if (news.textContent !== text) news.textContent = text;
        reload.hidden = !isOffered;
      };
      reload.addEventListener("click", () => location.reload());

      let failures = 0;
      const ask = async () => {
        if (document.hidden || version === "") return;
        try {
          const answer = await fetch(state, { cache: "no-store", headers: { "If-None-Match": `"${version}"` } });
          failures = 0;
          if (answer.status === 304) {
            tell("", false);
          } else if (answer.status === 200) {
            if (isTouched) tell("Something has changed.", true);
            else location.reload();
          }
        } catch {
          failures += 1;
          if (failures > 1) tell("The command that shows this page has ended.", false);
        }
      };
      setInterval(ask, 3000);
      document.addEventListener("visibilitychange", ask);

      // Typing a value selects it.
      for (const area of document.querySelectorAll("textarea[data-choice]")) {
        area.addEventListener("input", () => {
          const choice = document.getElementById(area.dataset.choice);
          if (!["text", "number", "blob"].includes(choice.value)) choice.value = area.dataset.kind;
        });
      }
    })();
    /*]]>*/
    """#
}
