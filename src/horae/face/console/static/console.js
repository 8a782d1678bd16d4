// What makes pages pleasant. Every page works without it.
(() => {
  "use strict";
  const html = document.documentElement;

  // The viewer's zone, for the server to render times in.
  const cookies = () => Object.fromEntries(document.cookie.split("; ").map((each) => each.split("=").map(decodeURIComponent)));
  const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const setZone = (zone) => { document.cookie = `horae_zone=${encodeURIComponent(zone)};path=/console;max-age=31536000;samesite=lax`; };
  if (browserZone && !("horae_zone" in cookies())) {
    setZone(browserZone);
    if (browserZone !== html.dataset.zone && "horae_zone" in cookies()) location.reload();
  }
  for (const button of document.querySelectorAll("[data-browser-zone]")) button.value = browserZone;

  // On a narrow screen the places are one line that scrolls: it shows where the viewer is.
  const place = document.querySelector(".top nav [aria-current]");
  if (place) { const line = place.closest("nav"); line.scrollLeft = place.offsetLeft - line.offsetLeft - (line.clientWidth - place.offsetWidth) / 2; }

  // How far away times are.
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const spanText = (seconds) => {
    let left = Math.abs(Math.round(seconds));
    const parts = [];
    for (const [unit, size] of units) {
      if (left >= size) { parts.push(`${Math.floor(left / size)}${unit}`); left %= size; }
    }
    return parts.slice(0, 2).join(" ") || "0s";
  };
  const tellRelative = () => {
    const now = Date.now();
    for (const each of document.querySelectorAll("[data-relative]")) {
      const seconds = (Date.parse(each.dataset.relative) - now) / 1000;
      each.textContent = seconds >= 0 ? `in ${spanText(seconds)}` : `${spanText(seconds)} ago`;
    }
  };
  setInterval(tellRelative, 1000);

  // Marks of a strip tell why on hover and focus.
  const tellWhy = (event) => {
    const mark = event.target.closest?.("[data-why]");
    const line = mark?.closest("section")?.querySelector("[data-strip-why]");
    if (line) line.textContent = mark.dataset.why;
  };
  document.addEventListener("mouseover", tellWhy);
  document.addEventListener("focusin", tellWhy);

  // A list keeps its selection: when it is shown again, when rows are found later, and when live updates move them.
  const chosen = new Set(JSON.parse(document.querySelector("[data-chosen]")?.dataset.chosen ?? "[]"));
  document.addEventListener("change", (event) => {
    const all = event.target.matches?.("[data-all]");
    for (const box of all ? event.target.form.elements : [event.target]) {
      if (box.name !== "chosen") continue;
      if (all) box.checked = event.target.checked;
      chosen[box.checked ? "add" : "delete"](box.value);
    }
  });
  document.addEventListener("htmx:load", (event) => {
    for (const box of event.detail.elt.querySelectorAll?.("[name=chosen]") ?? []) box.checked ||= chosen.has(box.value);
  });

  // One menu is open at a time; Escape and a click elsewhere close it.
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) { menu.open = false; menu.querySelector("summary").focus(); }
  });

  // The palette: Ctrl-K, arrows, Enter.
  const palette = document.getElementById("palette");
  const openPalette = () => { palette.showModal(); palette.querySelector("input").select(); };
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); openPalette(); return; }
    if (!palette?.open || !["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) return;
    const stops = [palette.querySelector("input"), ...palette.querySelectorAll(".found a")];
    const at = stops.indexOf(document.activeElement);
    if (event.key === "Enter") {
      if (at <= 0 && stops[1]) { event.preventDefault(); stops[1].click(); }
      return;
    }
    event.preventDefault();
    stops[(at + (event.key === "ArrowDown" ? 1 : stops.length - 1)) % stops.length].focus();
  });
  for (const link of document.querySelectorAll(".palette-open")) link.addEventListener("click", (event) => { event.preventDefault(); openPalette(); });
  palette?.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });

  // A box of a graph unfolds its entry in the list below.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-unfold]");
    if (link) document.querySelector(link.getAttribute("href")).open = true;
  });

  // Copy buttons.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch { // a browser without TLS has no clipboard, and another may refuse
      getSelection().selectAllChildren(text);
      button.textContent = "Selected: now press Ctrl+C";
    }
  });

  // A file is read into the field that it is meant for; without this script one pastes it.
  for (const place of document.querySelectorAll("[data-from-file]")) {
    place.hidden = false;
    place.querySelector("input").addEventListener("change", async (event) => {
      const [file] = event.target.files;
      if (!file) return;
      const field = document.getElementById(place.dataset.fromFile);
      field.value = await file.text();
      field.dispatchEvent(new Event("input", { bubbles: true }));
      event.target.value = "";
    });
  }

  // Live parts keep what a person is doing: ticked boxes, typed text, open menus. Hidden fields, and boxes of other values, follow their row.
  const isSame = (old, fresh) => old.name === fresh.name && (!["checkbox", "radio"].includes(old.type) || old.value === fresh.value);
  const untouched = (old, fresh) => old.nodeType === 1 && fresh.nodeType === 1 &&
    ((old.matches("input:not([type=hidden]), textarea, select") && isSame(old, fresh)) || (old.matches("details") && old.open));
  window.Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, fresh) => {
    if (old.nodeType === 1 && old.matches("[data-relative]") && fresh.nodeType === 1 && old.dataset.relative === fresh.dataset?.relative) return false;
    if (old.nodeType === 1 && old.matches("[data-strip-why], [data-keep]")) return false;
    return !untouched(old, fresh);
  };
  window.Idiomorph.defaults.callbacks.afterNodeMorphed = (node) => {
    if (node.nodeType === 1 && node.matches("[name=chosen]")) node.checked = chosen.has(node.value);
  };

  // The server goes away and comes back; a session ends; what is shown is gone.
  const away = document.getElementById("away");
  const say = (text) => { document.getElementById("away-text").textContent = text; away.hidden = false; };
  let lost = false;
  document.body.addEventListener("htmx:sseError", async () => {
    lost = true;
    try {
      const answer = await fetch("/console/session", { redirect: "manual" });
      if (answer.ok) return;
      say("Your session has ended.");
      const link = document.createElement("a");
      link.href = `/console/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
      link.textContent = " Sign in again";
      document.getElementById("away-text").append(link);
      document.querySelector("[data-live]")?.removeAttribute("sse-connect");
    } catch {
      say(`The server is away. This page shows what it knew at ${new Date().toLocaleTimeString()}, and tries again by itself.`);
    }
  });
  document.body.addEventListener("htmx:sseOpen", (event) => {
    if (lost) { lost = false; away.hidden = true; }
    event.detail.source.addEventListener("gone", () => say("It is no longer there, or cannot be read now. This page shows what it last was."));
    event.detail.source.addEventListener("live", () => { away.hidden = true; });
  });
  document.body.addEventListener("htmx:afterSwap", tellRelative);

  // A preview that says the same as before stays in place: another one would take away what is being clicked.
  let previewed = "";
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target.id !== "preview") return;
    if (event.detail.serverResponse === previewed) event.detail.shouldSwap = false;
    previewed = event.detail.serverResponse;
  });

  // A preview is made anew as one types: what was unfolded stays so.
  let unfolded = [];
  const folds = (event) => (event.target.id === "preview" ? [...event.target.querySelectorAll("details")] : []);
  document.body.addEventListener("htmx:beforeSwap", (event) => { unfolded = folds(event).map((each) => each.open); });
  document.body.addEventListener("htmx:afterSwap", (event) => { folds(event).forEach((each, place) => { each.open = unfolded[place] ?? each.open; }); });

  // The field that is wrong is marked; the notice of a refused form follows the preview, and goes once it is right.
  const markWrong = () => {
    const problem = document.querySelector("#preview [data-wrong]");
    const field = (problem ?? document.querySelector("[data-refused]"))?.dataset.wrong;
    for (const each of document.querySelectorAll("form:has(#preview) :is(input, textarea, select)")) {
      if (!field || each.name !== field) { each.removeAttribute("aria-invalid"); continue; }
      each.setAttribute("aria-invalid", "true");
      each.closest("details")?.setAttribute("open", "");
    }
  };
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "preview") return;
    const refused = document.querySelector("[data-refused]");
    const problem = event.target.querySelector("[data-wrong]");
    if (refused && problem) refused.replaceChildren(...problem.cloneNode(true).childNodes);
    else refused?.remove();
    markWrong();
  });
  markWrong();
  tellRelative();
})();
