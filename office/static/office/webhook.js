// A webhook's states: those that the chosen graph has; one that is ticked is never hidden.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const graph = document.getElementById("id_graph");
  const facts = document.getElementById("office-graphs");
  if (!graph || !facts) return;
  const graphs = JSON.parse(facts.textContent);

  function show() {
    const fitting = graphs[graph.value];
    for (const box of document.querySelectorAll('input[type="checkbox"][name="states"]')) {
      const place = box.closest("label")?.parentElement ?? box.parentElement;
      place.hidden = Boolean(fitting) && !fitting.includes(box.value) && !box.checked;
    }
  }

  graph.addEventListener("change", show);
  show();
});
