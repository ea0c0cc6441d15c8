// A new key: shows only the fields of its kind.
"use strict";
const KINDS = { resource: "resource", project_slugs: "widget", web_sites: "widget" };
document.addEventListener("DOMContentLoaded", () => {
  const kind = document.getElementById("id_kind");
  if (!kind) return;
  const show = () => {
    for (const [field, wanted] of Object.entries(KINDS)) {
      const line = document.querySelector(`.field-line.field-${field}`);
      if (line) line.hidden = kind.value !== wanted;
    }
  };
  kind.addEventListener("change", show);
  show();
});
