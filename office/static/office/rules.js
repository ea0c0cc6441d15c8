// The rules of a resource or project: each row shows the fields that its kind uses, rows move by
// keyboard too, and a picture shows what the rules come to before they are saved. What a rule
// means, and whether it is right, the server says.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const picture = document.querySelector(".rules-picture");
  const group = picture?.closest("[data-inline-type]");
  const form = group?.closest("form");
  if (!group || !form) return;

  const USES = { day: ["day"], hours: ["start", "end"], day_and_time: ["day", "start", "end"], period: ["start", "end"], weekdays: [], weekends: [] };
  const WALL = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?))?$/;
  const FIELDS = ["day", "start", "end"];
  const zone = form.querySelector("#id_timezone");
  const shown = picture.querySelector(".rules-shown");
  const hours = [...form.querySelectorAll("[data-hours] input")];
  const isEditable = !!group.querySelector("select[name$=-name]");
  let timer = 0;
  let running = null;

  const rows = () => [...group.querySelectorAll("tbody.form-group:not(.empty-form)")];
  const field = (row, name) => row.querySelector(`[name$="-${name}"]`);
  const nounOf = (row) => field(row, "name").value.replace(/^(allow|block)_/, "");
  const isGone = (row) => field(row, "DELETE")?.checked;

  // --- Fields that fit --------------------------------------------------------------------------
  function fit(row) {
    const noun = nounOf(row);
    const used = USES[noun] ?? [];
    for (const name of FIELDS) {
      field(row, name).closest("td").classList.toggle("rule-unused", !used.includes(name));
    }
    for (const name of ["start", "end"]) fitTime(field(row, name), noun);
  }

  function fitTime(input, noun) {
    const value = input.value;
    const matched = WALL.exec(value);
    if (noun === "period") {
      if (/^[\d:]{0,5}$/.test(value)) input.value = "";
      // An instant that carries its offset stays as it was written.
      if (!input.value || matched) {
        input.type = "datetime-local";
        input.step = 60;
        input.value = matched ? `${matched[1]}T${matched[2] ?? "00:00"}` : "";
      }
      return;
    }
    input.type = "text";
    if (matched) input.value = "";
    input.placeholder = input.name.endsWith("-start") ? "9 or 09:30" : "17 or 24";
    input.inputMode = "text";
  }

  // --- Order ------------------------------------------------------------------------------------
  function number() {
    rows().forEach((row, position) => {
      const input = field(row, "position");
      if (field(row, "name").value) input.value = position;
    });
  }

  function addButtons(row) {
    if (row.querySelector(".rule-move")) return;
    const place = document.createElement("span");
    place.className = "rule-moves";
    const moved = () => {
      number();
      drawSoon();
    };
    window.officeRows.addMoveButtons(place, row, { noun: "rule", rows, moved });
    field(row, "name").closest("td").firstElementChild.append(place);
  }

  // --- The picture ------------------------------------------------------------------------------
  function readRule(row) {
    const values = {};
    for (const name of USES[nounOf(row)] ?? []) {
      const value = field(row, name).value.trim();
      const matched = WALL.exec(value);
      if (matched?.[2]) values[name] = `${matched[1]} ${matched[2].padEnd(8, ":00")}`;
      else if (value) values[name] = /^\d+$/.test(value) ? Number(value) : value;
    }
    return { [field(row, "name").value]: values };
  }

  function drawSoon() {
    clearTimeout(timer);
    timer = setTimeout(draw, 350);
  }

  async function draw() {
    if (!picture.querySelector(".rules-days")) return;
    const chosen = isEditable ? rows().filter((row) => field(row, "name").value && !isGone(row)) : [];
    const body = { timezone: zone?.value, shown: shown?.value };
    body[`${picture.dataset.kind}_id`] = picture.dataset.id || null;
    if (isEditable) body.constraints = chosen.map(readRule);
    if (hours.length) body.hours = hours.map((day) => day.value);
    running?.abort();
    running = new AbortController();
    let answer;
    try {
      const response = await fetch(picture.dataset.address, {
        method: "POST",
        signal: running.signal,
        headers: { "Content-Type": "application/json", "X-CSRFToken": form.querySelector("[name=csrfmiddlewaretoken]").value },
        body: JSON.stringify(body),
      });
      answer = (await response.json()).data;
    } catch (error) {
      if (error.name === "AbortError") return;
    }
    showErrors(chosen, answer?.errors ?? {});
    hours.forEach((day, index) => showHoursError(day, answer?.errors.hours?.[index] ?? ""));
    const problem = picture.querySelector(".rules-problem");
    problem.textContent = answer ? (answer.problem && `Preview unavailable: ${answer.problem}`) || (Object.keys(answer.errors).length ? "Preview unavailable: please correct the marked fields." : "") : "Preview unavailable.";
    problem.hidden = !problem.textContent;
    for (const name of [".rules-days", ".rules-outside"]) picture.querySelector(name).hidden = !problem.hidden;
    if (!answer || Object.keys(answer.errors).length) return;
    drawDays(answer.days ?? []);
    sayOutside(answer.outside);
    picture.dataset.drawn = String(Number(picture.dataset.drawn || 0) + 1);
  }

  function showErrors(chosen, errors) {
    for (const old of group.querySelectorAll(".rule-error")) old.remove();
    for (const [position, byField] of Object.entries(errors)) {
      const row = chosen[position];
      if (!row) continue;
      for (const [name, messages] of Object.entries(byField)) {
        const said = document.createElement("div");
        said.className = "rule-error";
        said.textContent = messages.join(" ");
        (field(row, name) ?? field(row, "name")).after(said);
      }
    }
  }

  function showHoursError(day, error) {
    const fault = document.getElementById(`${day.id}_fault`);
    fault.textContent = error;
    day.toggleAttribute("aria-invalid", Boolean(error));
    if (error) day.setAttribute("aria-describedby", fault.id);
  }

  function drawDays(days) {
    const axis = document.createElement("div");
    axis.className = "rules-day";
    const hours = document.createElement("div");
    hours.className = "rules-hours";
    hours.ariaHidden = "true";
    for (const text of ["0", "6", "12", "18"]) hours.append(Object.assign(document.createElement("span"), { textContent: text }));
    axis.append(document.createElement("span"), hours);
    picture.querySelector(".rules-days").replaceChildren(axis, ...days.map(drawDay));
  }

  function drawDay(day) {
    const line = document.createElement("div");
    line.className = "rules-day";
    const label = Object.assign(document.createElement("span"), { textContent: day.label });
    const strip = document.createElement("div");
    strip.className = "rules-strip";
    strip.setAttribute("role", "img");
    const open = day.pieces.filter((piece) => piece.available).map(times);
    strip.ariaLabel = `${day.label}: ${open.length ? `open ${open.join(", ")}` : "nothing open"}`;
    for (const piece of day.pieces) {
      const part = document.createElement("i");
      part.className = `is-${piece.kind}`;
      part.style.setProperty("--lasts", piece.lasts);
      part.title = [`${times(piece)} ${piece.word}`, ...piece.reasons].join("\n");
      strip.append(part);
    }
    line.append(label, strip);
    return line;
  }

  function times(piece) {
    const end = piece.end.slice(11, 16);
    return `${piece.start.slice(11, 16)} to ${end === "00:00" ? "24:00" : end}`;
  }

  function sayOutside(outside) {
    const place = picture.querySelector(".rules-outside");
    place.classList.toggle("is-some", outside.count > 0);
    const words = document.createElement("p");
    const some = outside.count === 1 ? "1 upcoming booking is outside these hours:" : `${outside.count} upcoming bookings are outside these hours:`;
    words.textContent = outside.count ? some : "No upcoming bookings are affected.";
    const list = document.createElement("ul");
    for (const booking of outside.bookings) {
      const link = Object.assign(document.createElement("a"), { href: booking.url, textContent: booking.text });
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    if (outside.count > outside.bookings.length) {
      const more = document.createElement("li");
      more.textContent = `and ${outside.count - outside.bookings.length} more`;
      list.append(more);
    }
    place.replaceChildren(words, ...(outside.count ? [list] : []));
  }

  // --- What happens -----------------------------------------------------------------------------
  function begin(row) {
    fit(row);
    addButtons(row);
    nameFields(row);
  }

  // The theme's tables name their columns, not their fields.
  function nameFields(place) {
    for (const one of place.querySelectorAll("td[data-label] :is(input:not([type=hidden]), select, textarea)")) {
      if (!one.labels?.length) one.ariaLabel ||= one.closest("td").dataset.label;
    }
  }

  if (isEditable) {
    rows().forEach(begin);
    group.addEventListener("input", drawSoon);
    group.addEventListener("change", (event) => {
      if (event.target.name?.endsWith("-name")) {
        fit(event.target.closest("tbody"));
        number();
      }
      drawSoon();
    });
    document.addEventListener("formset:added", (event) => {
      if (group.contains(event.target)) begin(event.target.closest("tbody") ?? event.target);
    });
    document.addEventListener("formset:removed", drawSoon);
    form.addEventListener("submit", number);
  }
  nameFields(form);
  shown?.addEventListener("change", drawSoon);
  zone?.addEventListener("change", drawSoon);
  for (const day of hours) day.addEventListener("input", drawSoon);
  draw();
});
