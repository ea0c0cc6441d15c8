// Counts down the seconds to undo, then shows how the task goes on.
"use strict";
(() => {
  const page = document.getElementById("postponed");
  const left = page.querySelector("[data-left]");
  let seconds = Number(page.dataset.seconds);

  function reloadLater() {
    setTimeout(() => location.replace(location.href), Number(page.dataset.refresh) * 1000);
  }

  if (!left) {
    reloadLater();
    return;
  }
  const clock = setInterval(() => {
    seconds -= 1;
    left.textContent = Math.max(seconds, 0);
    if (seconds > 0) return;
    clearInterval(clock);
    location.replace(location.href);
  }, 1000);
})();
