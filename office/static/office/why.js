// The page works without this: each day a list whose parts open in place. Here the lists become
// columns to scale, and what is chosen is said beside them.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const said = document.querySelector(".why-said");
  const choice = document.querySelector("select[data-go]");
  // The field tells its changes to jQuery only.
  window.django?.jQuery?.(choice).on("change", () => {
    const own = choice.querySelector("[selected]").value;
    location.assign(choice.dataset.go.replace(own, choice.value) + keptDate());
  });
  for (const list of document.querySelectorAll(".why-stretches")) {
    list.style.setProperty("--hours", list.dataset.minutes);
    for (const item of list.children) {
      item.style.setProperty("--begins", item.dataset.begins);
      item.style.setProperty("--lasts", item.dataset.lasts);
    }
  }
  document.querySelector(".why-sheet")?.classList.add("is-laid");

  for (const stretch of document.querySelectorAll(".why-stretch")) {
    const summary = stretch.querySelector("summary");
    summary.addEventListener("focus", () => tell(stretch));
    stretch.addEventListener("toggle", () => {
      if (stretch.open) tell(stretch);
    });
  }
  const chosen = document.querySelector("[data-chosen]");
  if (chosen) {
    tell(chosen);
    chosen.scrollIntoView({ block: "center", inline: "center" });
  }

  function keptDate() {
    const day = new URLSearchParams(location.search).get("date");
    return day ? `?date=${encodeURIComponent(day)}` : "";
  }

  function tell(stretch) {
    for (const other of document.querySelectorAll(".why-stretch.is-told")) {
      other.classList.remove("is-told");
      if (other !== stretch) other.open = false;
    }
    stretch.classList.add("is-told");
    const reasons = stretch.querySelector(".why-reasons");
    const title = document.createElement("h2");
    title.textContent = reasons.dataset.title;
    said.replaceChildren(title, ...[...reasons.children].map((one) => one.cloneNode(true)));
  }
});
