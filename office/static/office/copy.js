// Buttons with data-copy="<id of a field>" put the field's text on the clipboard.
"use strict";
(() => {
  const words = officeWords("copy");
  const status = document.getElementById("copied");

  async function copy(field) {
    field.select();
    if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
    else if (!document.execCommand("copy")) throw new Error("refused");
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      try {
        await copy(document.getElementById(button.dataset.copy));
        status.textContent = words.copied;
      } catch {
        status.textContent = words.refused;
      }
    });
  }
})();
