// Rows that are moved by buttons, next to dragging. `officeRows.addMoveButtons(place, row, options)`:
// `up` and `down` name the buttons, `rows()` lists the rows in their order, `moved()` is called after
// a move.
"use strict";
window.officeRows = (() => {
  const MOVES = [
    ["↑", "up", -1],
    ["↓", "down", 1],
  ];

  function makeButton(text, words, onClick) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "office-row-button";
    button.textContent = text;
    button.ariaLabel = words;
    button.addEventListener("click", () => onClick(button));
    return button;
  }

  function addMoveButtons(place, row, options) {
    const { rows, moved } = options;
    for (const [sign, direction, step] of MOVES) {
      const button = makeButton(sign, options[direction], () => move(row, step, button));
      button.classList.add("rule-move");
      place.append(button);
    }

    function move(moving, step, button) {
      const all = rows();
      const other = all[all.indexOf(moving) + step];
      if (!other) return;
      if (step < 0) other.before(moving);
      else other.after(moving);
      moved();
      button.focus();
    }
  }

  return { addMoveButtons, makeButton };
})();
