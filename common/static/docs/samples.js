"use strict";

// Samples of an operation in curl, Python (requests) and JavaScript (fetch), from the OpenAPI document.

const exampleOf = (content) => {
  const examples = Object.values(content?.examples || {});
  return examples.length ? examples[0].value : content?.example;
};

// A value that the shells and languages write between quotes.
const textOf = (value) => String(value ?? "");
const singleQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const pythonLiteral = (value, indent = "") => {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const deeper = `${indent}    `;
  const parts = isList
    ? value.map((each) => `${deeper}${pythonLiteral(each, deeper)},`)
    : Object.entries(value).map(
        ([key, each]) => `${deeper}${JSON.stringify(key)}: ${pythonLiteral(each, deeper)},`,
      );
  const [open, close] = isList ? "[]" : "{}";
  return parts.length ? `${open}\n${parts.join("\n")}\n${indent}${close}` : `${open}${close}`;
};

// {curl, Python, JavaScript} -> text. `document`: the OpenAPI document; `origin`: of the service.
const samplesOf = (document, path, method, origin) => {
  const operation = document.paths[path][method];
  const parameters = (operation.parameters || []).map((given) =>
    given.$ref ? document.components.parameters[given.$ref.split("/").pop()] : given,
  );
  const valueOf = (given) =>
    textOf(given.example ?? exampleOf(given) ?? given.schema?.examples?.[0] ?? given.name.toUpperCase());
  const inPath = parameters.filter((given) => given.in === "path");
  const inQuery = parameters.filter((given) => given.in === "query" && given.required);
  const filled = inPath.reduce(
    (text, given) => text.replace(`{${given.name}}`, encodeURIComponent(valueOf(given))),
    path,
  );
  const query = new URLSearchParams(inQuery.map((given) => [given.name, valueOf(given)])).toString();
  const url = `${origin}${filled}${query ? `?${query}` : ""}`;
  const body = exampleOf(operation.requestBody?.content?.["application/json"]);
  const needsKey = (operation.security || []).some((each) => Object.keys(each).length);
  const verb = method.toUpperCase();
  return {
    curl: [
      "curl -s",
      needsKey && '-u ":$API_KEY"',
      verb !== "GET" && `-X ${verb}`,
      singleQuoted(url),
      body !== undefined && "-H 'Content-Type: application/json'",
      body !== undefined && `-d ${singleQuoted(JSON.stringify(body, null, 2))}`,
    ]
      .filter(Boolean)
      .join(" \\\n  "),
    Python: [
      "import os",
      "",
      "import requests",
      "",
      `response = requests.${method}(`,
      `    ${JSON.stringify(url)},`,
      needsKey && '    auth=("", os.environ["API_KEY"]),',
      body !== undefined && `    json=${pythonLiteral(body, "    ")},`,
      ")",
      "response.raise_for_status()",
      "print(response.text)",
    ]
      .filter((line) => line !== false)
      .join("\n"),
    JavaScript: [
      needsKey && "const key = process.env.API_KEY;",
      `const response = await fetch(${JSON.stringify(url)}, {`,
      `  method: ${JSON.stringify(verb)},`,
      (needsKey || body !== undefined) && "  headers: {",
      needsKey && "    Authorization: `Basic ${btoa(`:${key}`)}`,",
      body !== undefined && '    "Content-Type": "application/json",',
      (needsKey || body !== undefined) && "  },",
      body !== undefined && `  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),`,
      "});",
      "console.log(response.status, await response.text());",
    ]
      .filter(Boolean)
      .join("\n"),
  };
};
