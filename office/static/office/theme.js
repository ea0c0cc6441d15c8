// The theme's own menus for keyboards and screen readers: an icon is a word in a special font, which
// would be read aloud, copied and found, and some of its buttons are neither links nor buttons.
"use strict";

// Whether the key that is pressed finds a calendar, clock or choice open, which Escape then closes.
let isPopupOpen = false;
addEventListener("keydown", () => {
  const popups = document.querySelectorAll(".select2-container--open, .calendarbox, .clockbox");
  isPopupOpen = [...popups].some((popup) => popup.checkVisibility());
}, true);

function officeHasOpenPopup() {
  return isPopupOpen;
}

addEventListener("DOMContentLoaded", () => {
  const ICONS = ".material-symbols-outlined, .material-symbols-rounded";
  // Names of buttons that show only an icon, by the icon.
  const names = officeWords("theme");
  const BUTTON = "a[href], button, input, select, textarea, summary, [role]";
  const NAMED = "[aria-label], [aria-labelledby], [title]";

  function improve() {
    for (const element of document.querySelectorAll("[x-on\\:click]")) {
      const hasContent = element.textContent.trim() || element.matches(ICONS) || element.querySelector(`img, svg, ${ICONS}`);
      if (hasContent && !element.matches(BUTTON) && !element.querySelector(BUTTON)) makeButton(element);
    }
    document.querySelectorAll("select.select2-hidden-accessible").forEach(nameChoice);
    // The theme's scrolling boxes, all with one name, are no landmarks.
    for (const box of document.querySelectorAll(".simplebar-content-wrapper[role=region]")) {
      box.setAttribute("role", "group");
    }
    for (const icon of document.querySelectorAll("a > [title]:only-child")) {
      if (!icon.parentElement.matches(NAMED)) icon.parentElement.setAttribute("aria-label", icon.title);
    }
    for (const icon of document.querySelectorAll(ICONS)) {
      moveWord(icon);
      const control = icon.closest("a, button, [role=button]");
      if (control && !control.matches(NAMED) && !control.textContent.trim()) {
        control.setAttribute("aria-label", names[icon.dataset.icon] ?? names.expand_more);
      }
      if (icon !== control && !icon.hasAttribute("aria-hidden")) {
        icon.setAttribute("aria-hidden", "true");
      }
    }
  }

  // The style shows the word of the attribute, which is no text of the page.
  function moveWord(icon) {
    const word = icon.textContent.trim();
    if (!word) return;
    icon.dataset.icon = word;
    icon.textContent = "";
  }

  // select2 names its field by the chosen value, which an empty field lacks.
  function nameChoice(select) {
    const label = select.labels?.[0]?.textContent.replace("*", "").trim();
    const box = select.nextElementSibling?.querySelector("[role=combobox]");
    if (!label || !box || box.getAttribute("aria-label") === label) return;
    for (const part of [box, ...box.querySelectorAll("[role=textbox], [role=searchbox]")]) {
      part.removeAttribute("aria-labelledby");
      part.setAttribute("aria-label", label);
    }
  }

  function makeButton(element) {
    element.setAttribute("role", "button");
    element.tabIndex = 0;
    element.addEventListener("keydown", (event) => {
      if (event.target !== element || !["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      element.click();
    });
  }

  // The theme focuses the search 20 ms after the shortcut, also if it is not visible yet.
  function focusSearch(frames) {
    const field = document.getElementById("search-input-command");
    if (!field || field === document.activeElement || !frames) return;
    if (field.checkVisibility()) field.focus();
    requestAnimationFrame(() => focusSearch(frames - 1));
  }

  addEventListener("keydown", (event) => {
    const isShortcut = event.key === "k" && (event.ctrlKey || event.metaKey);
    if (isShortcut && !event.target.matches?.("input, textarea")) focusSearch(300);
  });

  // Names of columns that stand in each row on a phone. The theme's capital letters are those of
  // English headings.
  for (const cell of document.querySelectorAll("#result_list td[data-label]")) {
    const [first = "", ...others] = cell.dataset.label.trim();
    cell.dataset.label = first.toLocaleUpperCase(document.documentElement.lang) + others.join("");
  }
  improve();
  new MutationObserver(improve).observe(document.body, { childList: true, subtree: true });
});

// Devices that keep no list of today do not load the script for it.
addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("office-offline");
  const load = () => {
    const script = document.createElement("script");
    script.src = document.querySelector("link[rel=manifest]").dataset.script;
    document.head.append(script);
  };
  if (box) box.closest("div").hidden = !navigator.serviceWorker;
  if (localStorage.getItem("office-offline") !== null) load();
  else box?.addEventListener("change", load, { once: true });
});
