"use strict";
/* Runs ortgpu-fix itself, in a worker, on what is entered. The worker is made of this page's own
   text, so that the page's content security policy holds in it, too: it reaches this site alone. */

const work = async ({data: {root, call}}) => {
  if (!self.program) {
    const get = self.fetch.bind(self);
    let loaded = 0;
    self.fetch = async (...words) => {
      const answer = await get(...words);
      const counted = new TransformStream({
        transform(piece, stream) {
          loaded += piece.length;
          self.postMessage({loaded});
          stream.enqueue(piece);
        },
      });
      const {status, headers} = answer;
      return new Response(answer.body.pipeThrough(counted), {status, headers});
    };
    self.program = (async () => {
      const {loadPyodide} = await import(`${root}python/pyodide.mjs`);
      const files = await (await fetch(`${root}python/files.json`)).json();
      self.postMessage({total: files.bytes});
      const [python, ...wheels] = await Promise.all([
        loadPyodide({indexURL: `${root}python/`, env: {HOME: "/home/web"}}),
        ...files.wheels.map(async name => (await fetch(`${root}python/${name}`)).arrayBuffer()),
      ]);
      for (const wheel of wheels) python.unpackArchive(wheel, "whl");
      python.runPython(await (await fetch(`${root}python/answer.py`)).text());
      return python.globals.get("answer");
    })();
  }
  try {
    const answer = await self.program;
    self.postMessage({answer: JSON.parse(answer(...call))});
  } catch (error) {
    self.program = null;
    self.postMessage({problem: String(error.message ?? error).trim().split("\n").pop()});
  }
};

const form = document.getElementById("ask");
const texts = JSON.parse(form.dataset.texts);
const state = document.getElementById("status");
const bar = document.getElementById("progress");
const labels = [...form.querySelectorAll("label[data-fact]")];
const root = new URL(texts.root || ".", location.href).href;
let worker;
let total = 0;

const place = (name, ...parts) => {
  const box = document.getElementById(name);
  box.replaceChildren(...parts);
  document.getElementById(`${name}-part`).hidden = !parts.length;
};
const linked = (text, goal) => {
  const link = document.createElement("a");
  link.textContent = text;
  link.href = goal;
  return link;
};
const known = new RegExp(`(https://[^\\s)\`]+|(?<![\\w-])(?:${texts.errors.join("|")})(?![\\w-]))`);
// Addresses, and the errors that have a page, are links.
const shown = text => {
  const made = document.createElement("pre");
  const parts = text.replace(/^\n+|\s+$/g, "").split(known);
  made.append(...parts.map((part, at) => at % 2 === 0 ? part
    : linked(part, part.startsWith("https:") ? part : `error/${part}/index.html`)));
  return made;
};
const copied = text => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = texts.copy;
  button.addEventListener("click", () => navigator.clipboard.writeText(text));
  return button;
};
const kept = (name, text) => {
  const link = linked(name, URL.createObjectURL(new Blob([text], {type: "application/json"})));
  link.className = "button";
  link.download = name;
  return link;
};
const show = answer => {
  for (const label of labels) {
    label.classList.toggle("needed", answer.unknown.includes(label.dataset.fact));
  }
  place("causes", ...(answer.causes ? [shown(answer.causes)] : []));
  place("plan", ...(answer.plan ? [shown(answer.plan)] : []));
  place("commands", ...answer.commands.flatMap(each => [shown(each), copied(each)]));
  place("why", ...(answer.why ? [shown(answer.why)] : []));
  place("files", ...Object.entries(answer.files).flatMap(each => [kept(...each), " "]));
  bar.hidden = true;
  state.textContent = answer.unknown.length ? texts.needed : texts.done;
};
const told = ({data}) => {
  if (data.answer) return show(data.answer);
  if (data.problem) {
    bar.hidden = true;
    state.textContent = texts.failed.replace("{problem}", data.problem);
  }
  if (data.total) total = data.total;
  if (data.loaded && total) {
    bar.hidden = false;
    bar.value = Math.min(100, (100 * data.loaded) / total);
    const megabytes = bytes => (bytes / 1e6).toFixed(1);
    state.textContent = data.loaded < total
      ? texts.loading.replace("{megabytes}", megabytes(data.loaded)).replace("{total}", megabytes(total))
      : texts.working;
  }
};
const ask = () => {
  const {text} = form.elements;
  const chosen = Object.fromEntries(
    labels
      .map(label => [label.dataset.fact, label.querySelector("select, input").value])
      .filter(([, value]) => value),
  );
  if (location.protocol === "file:") {
    state.textContent = texts.file;
    return;
  }
  state.textContent = texts.working;
  state.scrollIntoView({block: "nearest"});
  if (!worker) {
    const source = new Blob([`"use strict"; self.onmessage = ${work};`], {type: "text/javascript"});
    worker = new Worker(URL.createObjectURL(source), {type: "module"});
    worker.onmessage = told;
    worker.onerror = error => told({data: {problem: error.message ?? "worker"}});
  }
  worker.postMessage({root, call: [text.value, texts.language, JSON.stringify(chosen)]});
};
form.addEventListener("submit", event => {
  event.preventDefault();
  ask();
});
document.getElementById("example").addEventListener("click", () => {
  form.reset();
  for (const [name, value] of Object.entries(JSON.parse(form.dataset.example))) {
    form.elements[name].value = value;
  }
  ask();
});
// A page's name alone: `//` and what follows would be another site.
if (/^#(\/\w[\w.-]*)+$/.test(location.hash)) location.replace(`${location.hash.slice(2)}/index.html`);
