"use strict";

// The list of operations beside the reference: one link each, filtered by the search field.

const METHODS = ["get", "post", "put", "delete"];

// [{tag, operations: [{id, method, path, summary}]}] in the order of the document's tags.
const groupOperations = (document) => {
  const groups = new Map(document.tags.map((tag) => [tag.name, []]));
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const method of METHODS.filter((name) => methods[name])) {
      const { operationId, summary, tags } = methods[method];
      groups.get(tags[0])?.push({ id: operationId, method, path, summary });
    }
  }
  return [...groups].map(([tag, operations]) => ({ tag, operations })).filter((group) => group.operations.length);
};

const makeElement = (name, attributes, ...children) => {
  const element = Object.assign(document.createElement(name), attributes);
  element.append(...children);
  return element;
};

// `open(tag, id)`: shows an operation of the reference.
const buildNavigation = (nav, openapi, open) => {
  const details = nav.querySelector("details");
  // Beside the reference, or above it: there it would push the reference off the screen.
  const isBeside = () => window.matchMedia("(min-width: 60em)").matches;
  details.open = isBeside();
  const search = nav.querySelector("input");
  const list = nav.querySelector("#docs-operations");
  const empty = nav.querySelector("#docs-none");
  const sections = groupOperations(openapi).map(({ tag, operations }) => {
    const rows = operations.map(({ id, method, path, summary }) => {
      const link = makeElement(
        "a",
        { href: `#/${tag}/${id}`, title: path },
        makeElement("span", { className: `docs-method docs-${method}`, textContent: method.toUpperCase() }),
        ` ${summary}`,
      );
      link.addEventListener("click", () => {
        open(tag, id);
        details.open = isBeside();
      });
      return { row: makeElement("li", {}, link), text: `${method} ${path} ${summary} ${id} ${tag}`.toLowerCase() };
    });
    const section = makeElement(
      "section",
      {},
      makeElement("h2", { textContent: tag }),
      makeElement("ul", {}, ...rows.map(({ row }) => row)),
    );
    list.append(section);
    return { section, rows };
  });
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const { section, rows } of sections) {
      for (const { row, text } of rows) row.hidden = !words.every((word) => text.includes(word));
      const shown = rows.filter(({ row }) => !row.hidden).length;
      section.hidden = !shown;
      found += shown;
    }
    empty.hidden = found > 0;
  });
};
