// Buttons that copy the snippets of the page.
const { copy, copied } = document.getElementById("snippets").dataset;

for (const snippet of document.querySelectorAll(".snippet")) {
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "quiet",
    textContent: copy,
  });
  button.addEventListener("click", async () => {
    snippet.select();
    await navigator.clipboard?.writeText(snippet.value).catch(() => {});
    button.textContent = copied;
  });
  snippet.after(button);
}
