// A new key: shows only the fields of its kind. Hidden boxes are not sent.
"use strict";
const KINDS = {
  resource: ["resource"],
  access: ["server"],
  scopes: ["server"],
  projects: ["server", "widget"],
  networks: ["server"],
  web_sites: ["widget"],
};
document.addEventListener("DOMContentLoaded", () => {
  const kind = document.getElementById("id_kind");
  if (!kind) return;
  const access = document.getElementById("id_access");
  const show = () => {
    for (const [field, wanted] of Object.entries(KINDS)) {
      const line = document.querySelector(`.field-line.field-${field}`);
      if (!line) continue;
      const isUnneeded = field === "scopes" && access.value !== "chosen";
      line.hidden = !wanted.includes(kind.value) || isUnneeded;
      for (const box of line.querySelectorAll("[type=checkbox]")) box.disabled = line.hidden;
    }
  };
  kind.addEventListener("change", show);
  access.addEventListener("change", show);
  show();
});
