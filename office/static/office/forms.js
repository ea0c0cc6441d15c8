// Pages of resources and projects: hours that are copied to other days, questions, tags as chips,
// the browser's time zone. Every field is a plain one without this script.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const words = officeWords("forms");
  const changed = (field) => field.dispatchEvent(new Event("input", { bubbles: true }));

  // --- Weekly hours -----------------------------------------------------------------------------
  for (const hours of document.querySelectorAll("[data-hours]")) {
    const days = [...hours.querySelectorAll(".office-hours-day")];
    const field = (day) => day.querySelector("input");
    days.forEach((day, index) => {
      const button = day.querySelector("[data-copy-day]");
      const others = index < 5 ? days.slice(0, 5) : days.slice(5);
      button.hidden = false;
      button.addEventListener("click", () => {
        for (const other of others) field(other).value = field(day).value;
        changed(field(day));
      });
    });
  }

  const zone = document.querySelector("#id_timezone");
  if (zone && !zone.value) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";

  // --- Rows: questions, what a booking needs at once, and the steps of a visit with rows within ----
  const startRows = (list) => {
    const named = list.dataset.rows === "question" ? "question" : "row";
    const ofList = (selector) => [...list.querySelectorAll(`:scope > ${selector}`)];
    const model = ofList("[data-blank]")[0].cloneNode(true);
    const rows = () => ofList("[data-row]:not([data-blank])");
    let count = ofList("[data-row]").length;

    const showOptions = (row) => {
      const options = row.querySelector(".office-options");
      if (options) options.hidden = row.querySelector("select[name$=-kind]").value !== "select";
    };
    const addButtons = (row) => {
      const place = row.querySelector(":scope > [data-row-buttons]");
      window.officeRows.addMoveButtons(place, row, { up: words[`${named}_up`], down: words[`${named}_down`], rows, moved: () => changed(row.querySelector("input")) });
      if (place.hasAttribute("data-fixed")) return;
      place.append(
        window.officeRows.makeButton("✕", words[`${named}_remove`], () => {
          row.remove();
          ofList("[data-blank]")[0].querySelector("input:not([type=hidden])").focus();
        }),
      );
    };
    // The empty row counts once something is entered; another empty one follows. The order of the
    // rows on the page counts, not their numbers.
    const fill = (row) => {
      row.removeAttribute("data-blank");
      addButtons(row);
      const next = model.cloneNode(true);
      const first = list.querySelector("input[type=hidden]").name;
      for (const field of next.querySelectorAll("input, select")) {
        if (field.name.startsWith(`${first}-`)) field.name = field.name.slice(0, first.length) + field.name.slice(first.length).replace(/-\d+/, `-${count}`);
      }
      count += 1;
      list.append(next);
      showOptions(next);
      next.querySelectorAll("[data-rows]").forEach(startRows);
    };
    const rowAt = (field) => ofList("[data-row]").find((row) => row.contains(field));
    list.addEventListener("change", (event) => showOptions(rowAt(event.target)));
    list.addEventListener("input", (event) => {
      const row = rowAt(event.target);
      if (row?.hasAttribute("data-blank") && event.target.matches("input")) fill(row);
    });
    ofList("[data-row]").forEach(showOptions);
    rows().forEach(addButtons);
  };
  document.querySelectorAll("[data-rows=question], [data-rows=requirement], [data-rows=step]").forEach(startRows);

  // --- Tags -------------------------------------------------------------------------------------
  for (const area of document.querySelectorAll("textarea[data-chips]")) {
    const place = document.createElement("div");
    place.className = "office-chips";
    const input = document.createElement("input");
    input.className = "office-input";
    input.autocomplete = "off";
    input.id = `${area.id}_new`;
    input.placeholder = words.type_and_enter;
    const label = document.querySelector(`label[for="${area.id}"]`);
    label?.setAttribute("for", input.id);
    const tags = () => area.value.split("\n").filter(Boolean);
    const store = (found) => {
      area.value = found.join("\n");
      changed(area);
      draw();
    };
    const add = () => {
      const text = input.value.trim();
      input.value = "";
      if (text && !tags().includes(text)) store([...tags(), text]);
    };
    const draw = () => {
      place.replaceChildren(
        ...tags().map((text) => {
          const chip = document.createElement("span");
          chip.className = "office-tag";
          const remove = window.officeRows.makeButton("✕", officeFill(words.remove, { text }), () => {
            store(tags().filter((other) => other !== text));
            input.focus();
          });
          remove.className = "";
          chip.append(text, remove);
          return chip;
        }),
      );
    };
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== ",") return;
      event.preventDefault();
      add();
    });
    input.addEventListener("blur", add);
    area.hidden = true;
    area.before(place, input);
    draw();
  }

  // --- Resources of a project -------------------------------------------------------------------
  const group = document.getElementById("project_resources-group");
  if (group) {
    const rows = () => [...group.querySelectorAll("tbody.form-group:not(.empty-form)")];
    const number = () => rows().forEach((row, position) => (row.querySelector("[name$=-position]").value = position));
    const begin = (row) => {
      const cell = row.querySelector("td.field-resource");
      if (!cell || row.querySelector(".rule-move")) return;
      const place = document.createElement("span");
      place.className = "office-row-buttons";
      window.officeRows.addMoveButtons(place, row, { up: words.resource_up, down: words.resource_down, rows, moved: number });
      cell.firstElementChild.append(place);
      const select = row.querySelector("select");
      if (select) select.ariaLabel = words.resource;
    };
    if (group.querySelector("[name$=-resource]")) rows().forEach(begin);
    document.addEventListener("formset:added", (event) => group.contains(event.target) && begin(event.target.closest("tbody") ?? event.target));
    group.closest("form").addEventListener("submit", number);
  }

  // --- Tables -----------------------------------------------------------------------------------
  // The theme's tables name their columns, not their fields.
  const nameFields = (place) => {
    for (const field of place.querySelectorAll("td[data-label] :is(input:not([type=hidden]), select, textarea)")) {
      if (!field.labels?.length) field.ariaLabel ||= field.closest("td").dataset.label;
    }
  };
  nameFields(document);
  document.addEventListener("formset:added", (event) => nameFields(event.target));
});
