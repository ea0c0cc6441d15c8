// A booking's page: the free times of the chosen resource, each a button that moves the booking.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("office-move");
  const place = document.getElementById("free-times");
  if (!form || !place) return;
  const resource = form.elements.resource_id;
  const show = form.querySelector("[data-show-times]");
  let latest = 0;

  async function load() {
    const number = ++latest;
    const words = document.createElement("p");
    words.textContent = "Looking for free times…";
    place.replaceChildren(words);
    try {
      const query = new URLSearchParams({ resource_id: resource?.value ?? "" });
      const response = await fetch(`${form.dataset.times}?${query}`);
      const { times } = (await response.json()).data;
      if (number !== latest) return;
      words.textContent = times.length ? "Free times. Choose one to reschedule:" : "No free times in the next two weeks.";
      place.append(...times.map(makeButton));
    } catch {
      if (number === latest) words.textContent = "Free times are unavailable.";
    }
  }

  function makeButton({ value, text }) {
    const button = document.createElement("button");
    button.className = "office-chip";
    button.name = "alternative";
    button.value = value;
    button.textContent = text;
    return button;
  }

  show.hidden = false;
  show.addEventListener("click", load);
  resource?.addEventListener("change", load);
});
