// While a calendar is being looked at, its page shows how far that is.
"use strict";
(() => {
  const EVERY = 3000; // ms
  const shown = () => document.getElementById("standing");
  let isLeaving = false;
  window.addEventListener("pagehide", () => { isLeaving = true; });

  async function renew() {
    if (!document.hidden && !isLeaving) {
      try {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("standing");
        if (answer.ok && fresh) shown().replaceWith(document.adoptNode(fresh));
      } catch {
        // It is asked again in a moment.
      }
    }
    wait();
  }

  function wait() {
    if (shown()?.dataset.live && !isLeaving) setTimeout(renew, EVERY);
  }

  // The theme loads scripts in the head, before there is anything to look at.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", wait);
  else wait();
})();
