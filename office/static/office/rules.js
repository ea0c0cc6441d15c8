// The rules of a resource, schedule or project: each row shows the fields that its kind uses, and a
// preview shows the effect before the rules are saved: two weeks, and a year of exceptions. The
// server parses the rows.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const picture = document.querySelector(".rules-picture");
  const form = picture?.closest("form");
  if (!form) return;

  const texts = officeWords("rules");
  const { lang } = document.documentElement;
  const WALL = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?))?$/;
  const DATED = /_(period|recurring)$/;
  const DAY = 86400000;
  const editor = form.querySelector("[data-rules]");
  const uses = JSON.parse(editor?.dataset.uses ?? "{}");
  const zone = form.querySelector("#id_timezone");
  const schedule = form.querySelector("#id_schedule_id");
  const shown = picture.querySelector(".rules-shown");
  const hours = [...form.querySelectorAll("[data-hours] input")];
  let timer = 0;
  let running = null;

  const rows = () => [...editor.querySelectorAll("[data-rule]")];
  const field = (row, column) => row.querySelector(`[data-column=${column}]`);
  const kindOf = (row) => field(row, "kind").value;

  // --- Rows -------------------------------------------------------------------------------------
  function fit(row) {
    const used = kindOf(row) ? [...uses[kindOf(row)], "label"] : [];
    for (const input of row.querySelectorAll("label [data-column]:not([data-column=kind])")) {
      const isUsed = used.includes(input.dataset.column);
      input.closest("label").hidden = !isUsed;
      input.disabled = !isUsed;
    }
    const categories = field(row, "categories");
    categories.disabled = kindOf(row) !== "block_holidays" || !categories.value;
    for (const column of ["start", "end"]) fitTime(field(row, column), kindOf(row));
    if (used.includes("country") && field(row, "country").options.length < 2) {
      field(row, "country").replaceChildren(editor.querySelector("[data-countries]").content.cloneNode(true));
    }
    field(row, "hours").placeholder = kindOf(row) === "replace_day" ? texts.closed : "10:00-14:00";
  }

  function fitTime(input, kind) {
    const value = input.value;
    const matched = WALL.exec(value);
    if (DATED.test(kind)) {
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
    input.placeholder = input.dataset.column === "start" ? texts.start_example : texts.end_example;
  }

  async function offerRegions(row) {
    const region = field(row, "subdivision");
    const country = field(row, "country").value;
    region.replaceChildren(new Option(texts.whole_country, ""));
    if (!country) return;
    const response = await fetch(`${picture.dataset.regions}?country=${encodeURIComponent(country)}`);
    const { data } = await response.json();
    if (field(row, "country").value !== country) return;
    region.append(...data.regions.map(({ code, name }) => new Option(name, code)));
  }

  function begin(row) {
    fit(row);
    row.querySelector("[data-row-buttons]").append(
      window.officeRows.makeButton("✕", texts.remove, () => {
        row.remove();
        editor.querySelector("[data-add]").focus();
        drawSoon();
      }),
    );
  }

  function startEditor() {
    const blank = editor.querySelector("[data-blank]");
    const buttons = editor.querySelector("[data-add-buttons]");
    let next = rows().length - 1;
    blank.remove();
    rows().forEach(begin);
    buttons.hidden = false;
    buttons.addEventListener("click", (event) => {
      const button = event.target.closest("[data-add]");
      if (!button) return;
      const row = blank.cloneNode(true);
      row.removeAttribute("data-blank");
      row.dataset.untouched = "";
      for (const input of row.querySelectorAll("[data-column]")) input.name = `${editor.dataset.rules}-${next}-${input.dataset.column}`;
      next += 1;
      field(row, "kind").value = button.dataset.add;
      buttons.before(row);
      begin(row);
      [...row.querySelectorAll("label:not([hidden]) [data-column]")][button.dataset.add ? 1 : 0].focus();
    });
    editor.addEventListener("input", (event) => {
      if (event.target.dataset.column !== "kind") delete event.target.closest("[data-rule]")?.dataset.untouched;
      drawSoon();
    });
    editor.addEventListener("change", (event) => {
      const row = event.target.closest("[data-rule]");
      if (event.target.dataset.column === "kind") fit(row);
      else delete row.dataset.untouched;
      if (event.target.dataset.column === "country") offerRegions(row);
      drawSoon();
    });
  }

  // --- The picture ------------------------------------------------------------------------------
  function readRow(row) {
    const inputs = [...row.querySelectorAll("[data-column]:not(:disabled)")];
    return Object.fromEntries(inputs.map((input) => [input.dataset.column, input.value]));
  }

  function drawSoon() {
    clearTimeout(timer);
    timer = setTimeout(draw, 350);
  }

  async function draw() {
    // A new row is no error before its first field is entered.
    const isUsed = (row) => kindOf(row) && (!("untouched" in row.dataset) || !uses[kindOf(row)].length);
    const chosen = editor ? rows().filter(isUsed) : [];
    const body = { timezone: zone?.value, shown: shown?.value };
    body[`${picture.dataset.kind}_id`] = picture.dataset.id || null;
    if (schedule) body.under = schedule.value;
    if (editor) body.rows = chosen.map(readRow);
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
    problem.textContent = describeProblem(answer);
    problem.hidden = !problem.textContent;
    for (const name of [".rules-days", ".rules-outside", ".rules-year", ".rules-exceptions"]) picture.querySelector(name).hidden = !problem.hidden;
    if (!answer || Object.keys(answer.errors).length) return;
    drawDays(answer.days ?? []);
    sayOutside(answer.outside);
    drawYear(answer.year);
    sayExceptions(answer.year);
    picture.dataset.drawn = String(Number(picture.dataset.drawn || 0) + 1);
  }

  function describeProblem(answer) {
    if (!answer) return texts.unavailable;
    if (answer.problem) return officeFill(texts.unavailable_because, { problem: answer.problem });
    return Object.keys(answer.errors).length ? texts.unavailable_for_errors : "";
  }

  function showErrors(chosen, errors) {
    for (const old of editor?.querySelectorAll(".rule-error") ?? []) old.remove();
    for (const [position, byField] of Object.entries(errors)) {
      const row = chosen[position];
      if (!row) continue;
      for (const [name, messages] of Object.entries(byField)) {
        const said = document.createElement("div");
        said.className = "rule-error";
        said.textContent = messages.join(" ");
        (field(row, name) ?? field(row, "kind")).after(said);
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
    strip.ariaLabel = officeFill(open.length ? texts.day_open : texts.day_closed, { day: day.label, hours: open.join(", ") });
    for (const piece of day.pieces) {
      const part = document.createElement("i");
      part.className = `is-${piece.kind}`;
      part.style.setProperty("--lasts", piece.lasts);
      part.title = [officeFill(texts.span_kind, { span: times(piece), kind: piece.word }), ...piece.reasons].join("\n");
      strip.append(part);
    }
    line.append(label, strip);
    return line;
  }

  function times(piece) {
    const end = piece.end.slice(11, 16);
    return officeFill(texts.span, { start: piece.start.slice(11, 16), end: end === "00:00" ? "24:00" : end });
  }

  function sayOutside(outside) {
    const place = picture.querySelector(".rules-outside");
    place.classList.toggle("is-some", outside.count > 0);
    const words = document.createElement("p");
    words.textContent = outside.count ? officePlural(texts.outside, outside.count) : texts.none_outside;
    const list = document.createElement("ul");
    for (const booking of outside.bookings) {
      const link = Object.assign(document.createElement("a"), { href: booking.url, textContent: booking.text });
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    if (outside.count > outside.bookings.length) {
      const more = document.createElement("li");
      more.textContent = officePlural(texts.more, outside.count - outside.bookings.length);
      list.append(more);
    }
    place.replaceChildren(words, ...(outside.count ? [list] : []));
  }

  // --- The year ---------------------------------------------------------------------------------
  function drawYear(year) {
    const byDate = new Map(year.days.map((day) => [day.date, day]));
    const [first, month] = year.first.split("-").map(Number);
    const months = Array.from({ length: 12 }, (_, number) => drawMonth(new Date(Date.UTC(first, month - 1 + number, 1)), byDate));
    picture.querySelector(".rules-year").replaceChildren(...months);
  }

  function drawMonth(start, byDate) {
    const place = document.createElement("div");
    place.className = "rules-month";
    const title = document.createElement("b");
    title.textContent = start.toLocaleDateString(lang.startsWith("en") ? "en-GB" : `${lang}-u-nu-latn`, { month: "short", year: "numeric", timeZone: "UTC" });
    place.append(title);
    for (let day = new Date(start); day.getUTCMonth() === start.getUTCMonth(); day = new Date(day.getTime() + DAY)) {
      const cell = document.createElement("i");
      cell.textContent = day.getUTCDate();
      if (day.getUTCDate() === 1) cell.style.gridColumnStart = String(((day.getUTCDay() + 6) % 7) + 1);
      const found = byDate.get(day.toISOString().slice(0, 10));
      if (found) {
        cell.className = `is-${found.kind}`;
        cell.title = found.text;
      }
      place.append(cell);
    }
    return place;
  }

  function sayExceptions(year) {
    const place = picture.querySelector(".rules-exceptions");
    if (!year.lines.length) {
      place.replaceChildren(Object.assign(document.createElement("p"), { textContent: texts.no_exceptions }));
      return;
    }
    const list = document.createElement("ul");
    const lines = year.more ? [...year.lines, officePlural(texts.more, year.more)] : year.lines;
    list.append(...lines.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    place.replaceChildren(list);
  }

  if (editor) startEditor();
  shown?.addEventListener("change", drawSoon);
  zone?.addEventListener("change", drawSoon);
  schedule?.addEventListener("change", drawSoon);
  for (const day of hours) day.addEventListener("input", drawSoon);
  draw();
});
