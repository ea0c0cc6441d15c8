// A new key: whose resource it is, is asked for a resource's key alone.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const kind = document.getElementById("id_kind");
  const resource = document.querySelector(".field-line.field-resource");
  if (!kind || !resource) return;
  const show = () => { resource.hidden = kind.value !== "resource"; };
  kind.addEventListener("change", show);
  show();
});
