// A booking's page: the free times of the chosen resource from the chosen day on, each a button that
// moves the booking, below its day. Another start moves the end, so that the length stays.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const texts = officeWords("booking");
  const form = document.getElementById("office-move");
  const place = document.getElementById("free-times");
  if (!form || !place) return;
  const resource = form.elements.resource_id;
  const { start, end } = form.elements;
  const show = form.querySelector("[data-show-times]");
  let latest = 0;
  let length = lengthNow();

  async function load() {
    const number = ++latest;
    const words = document.createElement("p");
    words.textContent = texts.loading;
    place.replaceChildren(words);
    try {
      const query = new URLSearchParams({ resource_id: resource?.value ?? "", start: start.value });
      const response = await fetch(`${form.dataset.times}?${query}`);
      const { times } = (await response.json()).data;
      if (number !== latest) return;
      words.textContent = times.length ? texts.times : texts.no_times;
      place.append(...officeByDay(times, makeButton));
    } catch {
      if (number === latest) words.textContent = texts.unavailable;
    }
  }

  function makeButton({ value, clock }) {
    const button = document.createElement("button");
    button.className = "office-chip";
    button.name = "alternative";
    button.value = value;
    button.textContent = clock;
    return button;
  }

  // Readings of a wall clock, counted as though the clock were UTC.
  function lengthNow() {
    return Date.parse(`${end.value}Z`) - Date.parse(`${start.value}Z`);
  }

  function moveEnd() {
    const moment = Date.parse(`${start.value}Z`) + length;
    if (length > 0 && moment) end.value = new Date(moment).toISOString().slice(0, 16);
    if (start.value) load();
  }

  start.addEventListener("change", moveEnd);
  end.addEventListener("change", () => { length = lengthNow(); });
  show.hidden = false;
  show.addEventListener("click", load);
  resource?.addEventListener("change", load);
});
