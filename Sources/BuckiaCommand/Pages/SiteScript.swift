/// What the pages of a server do besides: they notice when what they show has changed, and keep what is being typed.
enum SiteScript {
  static let text = #"""
    /*<![CDATA[*/
    (() => {
      const main = document.querySelector("main");
      const news = document.getElementById("news");
      const reload = document.getElementById("reload");
      const { state, version } = main.dataset;

      // What has just happened is read out, and told once: a page that is loaded again does not tell it again.
      const message = document.getElementById("message");
      if (message) {
        message.focus();
        const here = new URL(location.href);
        here.searchParams.delete("told");
        history.replaceState(null, "", here.href);
      }

      // A page that nobody has touched shows by itself what has changed. On any other that is the person's choice.
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

      // Who types a value wants it.
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
