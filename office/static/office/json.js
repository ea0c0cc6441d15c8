// JSON fields are checked by the server while they are typed; it names line and column.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const PAUSE = 300;

  for (const area of document.querySelectorAll("textarea[data-json]")) {
    const fault = document.createElement("span");
    fault.className = "office-fault";
    fault.id = `${area.id}_fault`;
    fault.setAttribute("role", "status");
    area.after(fault);
    area.setAttribute("aria-describedby", fault.id);
    let timer = 0;
    let latest = 0;

    const check = async () => {
      const number = ++latest;
      const response = await fetch(area.form.querySelector("[data-json-check]").dataset.jsonCheck, {
        method: "POST",
        headers: { "Content-Type": "text/plain", "X-CSRFToken": area.form.elements.csrfmiddlewaretoken.value },
        body: area.value,
      });
      const { error } = (await response.json()).data;
      if (number !== latest) return;
      fault.textContent = error;
      area.toggleAttribute("aria-invalid", Boolean(error));
    };
    area.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => check().catch(() => {}), PAUSE);
    });
  }
});
