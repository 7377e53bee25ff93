// Search as you type, keyboard shortcuts, and passages that open within the page. Without this script the page works
// with links and forms. The script fetches whole pages and replaces parts of this one, so only the server makes HTML.
"use strict";

const TYPING_MS = 140;
const SETTLED_MS = 1500;
const form = document.querySelector("#search");
const field = document.querySelector("#q");
const searches = document.querySelector("#results") !== null;

let running = null;
let timer = 0;
let typedAt = 0;

function address() {
  const query = new URLSearchParams();
  const seen = new Set();
  for (const [name, value] of new FormData(form)) {
    const usual = name !== "q" && (value.trim() === "" || (name === "mode" && value === "hybrid"));
    const key = `${name}=${value}`;
    if (usual || seen.has(key)) continue;
    seen.add(key);
    query.append(name, value);
  }
  if (query.get("q") === "") query.delete("q");
  const text = query.toString();
  return text ? `/?${text}` : "/";
}

// `how` is what happens to the address. "push" or "replace": the form has changed. "link": a link was followed; its address
// is pushed, and the form takes its values. "same": unchanged. "back": already set by the browser.
async function go(url, how) {
  clearTimeout(timer);
  if (running) running.abort();
  const mine = (running = Object.assign(new AbortController(), { how }));
  const results = document.querySelector("#results");
  results.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { signal: mine.signal, headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!fresh.querySelector("#results")) return location.assign(url); // to sign in, or to see the error
    if (how === "push" || how === "link") history.pushState(null, "", url);
    if (how === "replace") history.replaceState(null, "", url);
    show(fresh, how === "link" || how === "back");
  } catch (error) {
    if (error.name === "AbortError") return;
    say("Cannot reach the server. Check the connection and try again.");
  } finally {
    if (running === mine) {
      running = null;
      document.querySelector("#results").removeAttribute("aria-busy");
    }
  }
}

function show(fresh, wholeForm) {
  document.title = fresh.title;
  const focused = document.activeElement;
  const facets = document.querySelector("#facets");
  const open = facets.open;
  replace("#facets", fresh);
  document.querySelector("#facets").open = open;
  replace("#results", fresh);
  document.querySelector("#outcome").replaceChildren(...fresh.querySelector("#outcome").childNodes);
  if (wholeForm) {
    field.value = fresh.querySelector("#q").value;
    for (const radio of modes()) {
      // A page offers the mode `engine` only if its address has it.
      radio.checked = fresh.querySelector(`input[name=mode][value=${radio.value}]`)?.checked ?? false;
    }
  }
  keepFocus(focused);
}

function replace(selector, fresh) {
  document.querySelector(selector).replaceWith(document.adoptNode(fresh.querySelector(selector)));
}

// The focused box has been replaced by a new element.
function keepFocus(focused) {
  if (focused.isConnected || !focused.name) return;
  for (const input of document.querySelectorAll("#facets input, #facets select")) {
    if (input.name === focused.name && input.type === focused.type && (input.type !== "checkbox" || input.value === focused.value)) {
      input.focus();
      return;
    }
  }
}

function say(text) {
  const outcome = document.querySelector("#outcome");
  const message = document.createElement("span");
  message.className = "without";
  message.textContent = text;
  outcome.replaceChildren(message);
}

function typed() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    // One history entry for each query, not for each letter. A push that this search aborts has made none yet.
    const how = running?.how === "push" || Date.now() - typedAt > SETTLED_MS ? "push" : "replace";
    typedAt = Date.now();
    go(address(), how);
  }, TYPING_MS);
}

function settled() {
  typedAt = 0;
  go(address(), address() === location.pathname + location.search ? "same" : "push");
}

if (searches) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    settled();
  });
  field.addEventListener("input", typed);
  document.addEventListener("change", (event) => {
    if (event.target.form === form && event.target !== field) settled();
  });
  window.addEventListener("popstate", () => go(location.pathname + location.search, "back"));
}

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const link = event.target.closest("a");
  if (!link) return;
  if (searches && link.dataset.go !== undefined) {
    event.preventDefault();
    typedAt = 0;
    go(link.getAttribute("href"), "link").then(() => {
      if (link.closest(".paging")) scrollTo(0, 0);
    });
  } else if (link.classList.contains("context")) {
    event.preventDefault();
    context(link);
  }
});

// Empty if the index has only one mode.
function modes() {
  return form.querySelectorAll("input[name=mode]");
}

async function context(link) {
  const hit = link.closest(".hit");
  const opened = hit.querySelector(".passages");
  if (opened) {
    opened.hidden = !opened.hidden;
  } else {
    const answer = await fetch(link.href).catch(() => null);
    if (!answer || !answer.ok) return location.assign(link.href);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const passages = fresh.querySelector(".passages");
    if (!passages || hit.querySelector(".passages")) return undefined;
    passages.querySelector("#found")?.removeAttribute("id"); // several hits can be open
    hit.querySelector(".under").before(document.adoptNode(passages));
  }
  link.textContent = hit.querySelector(".passages").hidden ? "Show context" : "Hide context";
  return undefined;
}

// Copies the text of an element. Browsers allow that on secure pages and on localhost only.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) button.hidden = true;
  button.addEventListener("click", async () => {
    const status = document.querySelector("#copied");
    try {
      await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).innerText.trim());
      status.textContent = "Copied";
    } catch {
      status.textContent = "The browser did not allow copying";
    }
  });
}

// --- keyboard -------------------------------------------------------------------------------------------------------

function step(by) {
  const titles = [...document.querySelectorAll(".hit .title")];
  if (!titles.length) return;
  const at = titles.findIndex((title) => title.closest(".hit").contains(document.activeElement));
  const next = titles[at < 0 ? (by > 0 ? 0 : titles.length - 1) : at + by];
  if (!next) return by < 0 ? field.focus() : undefined;
  next.focus({ preventScroll: true });
  next.closest(".hit").scrollIntoView({ block: "nearest" });
  return undefined;
}

const KEYS = {
  "/": () => {
    field.focus();
    field.select();
  },
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  c: () => document.activeElement.closest(".hit")?.querySelector("a.context").click(),
  e: () => document.activeElement.closest(".hit")?.querySelector(".why > summary").click(),
  "?": () => document.querySelector("#keys").showModal(),
  Escape: () => field.focus(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  const at = event.target;
  if (at === field && event.key === "ArrowDown") {
    event.preventDefault();
    step(1);
    return;
  }
  if (at.matches("input, textarea, select") || !field) return;
  if (at.matches("summary") && event.key === "Enter") return;
  const act = KEYS[event.key];
  // On a page without hits, arrows scroll.
  if (!act || (event.key.startsWith("Arrow") && !document.querySelector(".hit"))) return;
  event.preventDefault();
  act();
});

// --- theme and help -------------------------------------------------------------------------------------------------

document.querySelector("#theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // The choice applies to this page only.
  }
});
document.querySelector("#help").addEventListener("click", () => KEYS["?"]());
