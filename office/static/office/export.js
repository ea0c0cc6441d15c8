// Fetches the rows piece by piece, shows how far it is, and offers the whole as a file.
"use strict";
(() => {
  const texts = officeWords("export");
  const page = document.getElementById("export");
  const bar = page.querySelector("progress");
  const words = document.getElementById("export-words");
  const start = document.getElementById("export-start");
  const file = document.getElementById("export-file");
  const total = Number(page.dataset.total);

  async function fetchRows() {
    const pieces = ["\ufeff"]; // spreadsheets then read UTF-8
    let done = 0;
    for (let after = ""; after !== null; ) {
      const url = new URL(page.dataset.rows, location.href);
      if (after) url.searchParams.set("after", after);
      const answer = await fetch(url, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(officeFill(texts.status, { status: answer.status }));
      const piece = await answer.json();
      pieces.push(piece.csv);
      done += piece.count;
      after = piece.next;
      bar.max = Math.max(total, done);
      bar.value = done;
      words.textContent = officeFill(texts.progress, { done, total: bar.max });
    }
    return [pieces, done];
  }

  start.addEventListener("click", async () => {
    start.disabled = true;
    try {
      const [pieces, done] = await fetchRows();
      file.href = URL.createObjectURL(new Blob(pieces, { type: "text/csv;charset=utf-8" }));
      file.hidden = false;
      start.hidden = true;
      words.textContent = officeFill(texts.ready, { done, total: done });
      file.focus();
    } catch (error) {
      words.textContent = officeFill(texts.failed, { problem: error.message });
      start.disabled = false;
    }
  });
})();
