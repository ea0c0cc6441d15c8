// Reminders: shows the fields that fit the type, and reads each row back as a sentence.
"use strict";
(() => {
  const FIELDS = {
    email: ["recipient", "subject"],
    webhook: ["url", "method", "expected_response_code"],
  };
  const words = officeWords("reminders");

  const field = (row, name) => row.querySelector(`[name$="-${name}"]`);
  const value = (row, name) => field(row, name)?.value.trim() ?? "";

  // The same words as event_notification_words.
  function sentence(row) {
    const [type, time, unit, side] = ["type", "when_time", "when_unit", "when_type"].map((name) => value(row, name));
    if (!type || !time || !unit || !side) return "…";
    const count = Number(time);
    const when = count ? officePlural(words[`${unit}_${side}`], count) : words.at_the_start;
    if (type === "webhook") {
      const method = (value(row, "method") || "post").toUpperCase();
      return officeFill(words.webhook, { when, method, url: value(row, "url") });
    }
    const subject = value(row, "subject");
    const name = `email_${value(row, "recipient")}${subject ? "_subject" : ""}`;
    return officeFill(words[name], { when, subject });
  }

  function show(row) {
    const type = value(row, "type");
    for (const [kind, names] of Object.entries(FIELDS)) {
      for (const name of names) {
        const cell = field(row, name)?.closest(".field-line") ?? row.querySelector(`.field-${name}`);
        if (cell) cell.hidden = kind !== type;
      }
    }
    const heading = row.querySelector("h3 strong");
    if (heading && (sentence(row) !== "…" || row.isRead)) {
      row.isRead = true;
      heading.textContent = sentence(row);
      heading.setAttribute("role", "status");
    }
  }

  function rowOf(target) {
    return target instanceof Element && target.closest(".form-group");
  }

  // The order of the rows is their order on the page.
  function number() {
    reminders().forEach((row, position) => (field(row, "position").value = position));
  }

  function reminders() {
    return [...document.querySelectorAll(".formset .form-group:not(.empty-form)")].filter((row) => field(row, "when_unit"));
  }

  function addButtons(row) {
    const heading = row.querySelector("h3");
    if (!heading || row.querySelector(".rule-move")) return;
    const place = document.createElement("span");
    place.className = "office-row-buttons";
    window.officeRows.addMoveButtons(place, row, { up: words.up, down: words.down, rows: reminders, moved: number });
    heading.lastElementChild.before(place);
  }

  // A project's first reminder replaces those of the app.
  function useOwnReminders() {
    const own = document.querySelector("#id_replaces_notifications");
    if (own) own.checked = true;
  }

  function start() {
    const rows = () => document.querySelectorAll(".formset .form-group");
    const isReminder = (row) => row && field(row, "when_unit");
    const showAll = () => {
      rows().forEach((row) => isReminder(row) && show(row));
      reminders().forEach(addButtons);
    };
    for (const name of ["input", "change"]) {
      document.addEventListener(name, (event) => {
        const row = rowOf(event.target);
        if (isReminder(row)) show(row);
      });
    }
    document.addEventListener("formset:added", (event) => {
      if (isReminder(event.target)) useOwnReminders();
      showAll();
    });
    document.addEventListener("submit", number);
    showAll();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
