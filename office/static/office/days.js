// Offered times under their days: `officeByDay(times, makeButton)` returns a group for each day of
// times that are ordered and have their `day` in words.
"use strict";
window.officeByDay = (times, makeButton) => {
  const groups = [];
  for (const time of times) {
    if (groups.at(-1)?.dataset.day !== time.day) {
      const group = document.createElement("div");
      group.className = "office-day";
      group.dataset.day = time.day;
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", time.day);
      const heading = document.createElement("strong");
      heading.textContent = time.day;
      group.append(heading);
      groups.push(group);
    }
    groups.at(-1).append(makeButton(time));
  }
  return groups;
};
