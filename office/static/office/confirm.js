// Buttons with data-confirm ask before their form is sent.
"use strict";
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-confirm]");
  if (button && !window.confirm(button.dataset.confirm)) event.preventDefault();
});
