// What a page shows, as a program would ask for it.

import { copyable, tabs, dialog } from "./elements.js";

const shell = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
const lines = (value) => JSON.stringify(value, null, 2);

/** The same request in curl, Python and TypeScript; `typed` are the calls of the client libraries. */
export function snippets({ method = "GET", path, body, python, typescript }) {
  const url = location.origin + path;
  const curl = ["curl " + (method === "GET" ? "" : method === "POST" ? "" : "-X " + method + " ") + shell(url)];
  if (body !== undefined) curl.push("  -H 'Content-Type: application/json'", "  -d " + shell(JSON.stringify(body)));
  return {
    curl: curl.join(" \\\n"),
    Python: python ?? `import json, urllib.request\n\nrequest = urllib.request.Request(\n    ${JSON.stringify(url)},\n    method=${JSON.stringify(method)},${body === undefined ? "" : `\n    data=json.dumps(${pythonic(body)}).encode(),\n    headers={"Content-Type": "application/json"},`}\n)\nprint(json.load(urllib.request.urlopen(request)))`,
    TypeScript: typescript ?? `const response = await fetch(${JSON.stringify(url)}, {\n  method: ${JSON.stringify(method)},${body === undefined ? "" : `\n  headers: { "Content-Type": "application/json" },\n  body: JSON.stringify(${lines(body)}),`}\n});\nconsole.log(await response.json());`,
  };
}

/** A JSON value as Python writes it. */
export function pythonic(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return "[" + value.map(pythonic).join(", ") + "]";
  if (typeof value === "object") return "{" + Object.entries(value).map(([key, one]) => JSON.stringify(key) + ": " + pythonic(one)).join(", ") + "}";
  return JSON.stringify(value);
}

export function showSnippets(request) {
  const all = snippets(request);
  dialog("As code", tabs(Object.fromEntries(Object.entries(all).map(([name, text]) => [name, () => copyable(text)]))));
}
