// Keys without Ctrl: none while somebody types, and none after they were switched off (WCAG 2.1.4).
// Their list is a dialog, whose links are the keys' targets.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const dialog = document.getElementById("office-keys");
  if (!dialog) return;
  const STORED = "office-keys", OFF = "off";
  const FIELDS = "input:not([type=checkbox], [type=radio], [type=submit]), textarea, select, [contenteditable], [role=combobox]";
  const ROWS = "#result_list tr.data-row, #content :is(.office-rows, .office-lines, .desk-entries) > li";
  const ACCEPT = "button[name=action][value=confirm]";
  const actions = { "?": () => dialog.showModal(), "/": search, "a": accept, "j": () => move(1), "k": () => move(-1) };
  const isOn = document.getElementById("office-keys-on");

  isOn.checked = localStorage.getItem(STORED) !== OFF;
  isOn.addEventListener("change", () => {
    if (isOn.checked) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, OFF);
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("a[href='#office-keys']")) return;
    event.preventDefault();
    dialog.showModal();
  });

  // Before the theme, which has `/` for itself on lists.
  addEventListener("keydown", (event) => {
    // A field keeps the focus for a moment after its dialog was closed.
    const isTyping = event.target.closest?.(FIELDS)?.checkVisibility() || document.querySelector("dialog[open]");
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping) return;
    const act = actions[event.key] ?? linkOf(event.key);
    if (!act) return;
    event.stopImmediatePropagation();
    if (!isOn.checked) return;
    event.preventDefault();
    act();
  }, true);

  function linkOf(key) {
    const link = [...dialog.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
    return link && (() => link.click());
  }

  function search() {
    const field = document.getElementById("searchbar");
    if (field) field.focus();
    else window.dispatchEvent(new CustomEvent("opencommand"));
  }

  // --- Rows -------------------------------------------------------------------------------------
  const linkIn = (row) => row.querySelector("th a, td a, a");
  const chosenRow = () => document.activeElement.closest(ROWS);

  // Focuses the link of the next row, which Enter then opens.
  function move(step) {
    const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.checkVisibility() && linkIn(row));
    const place = rows.indexOf(chosenRow());
    const next = place < 0 ? rows[step > 0 ? 0 : rows.length - 1] : rows[place + step];
    next?.scrollIntoView({ block: "nearest" });
    if (next) linkIn(next).focus();
  }

  function accept() {
    const row = chosenRow();
    if (row?.matches(".model-booking tr")) acceptInList(row);
    else (row ?? document.getElementById("content")).querySelector(ACCEPT)?.click();
  }

  // The list's own action, for this row alone.
  function acceptInList(row) {
    const form = row.closest("form");
    const isPending = row.querySelector(".field-shown_state")?.textContent.trim() === officeWords("keys").pending;
    if (!isPending || !form.elements.action) return;
    for (const box of form.querySelectorAll(".action-select")) box.checked = row.contains(box);
    form.elements.action.value = "apply_confirm";
    form.submit();
  }
});
