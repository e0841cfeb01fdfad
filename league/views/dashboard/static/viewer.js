"use strict";
/* Starts the films on a page: every element with data-film is filled once. */

async function startViewer(root) {
  root.dataset.started = "yes";
  const answer = await fetch(root.dataset.film);
  if (!answer.ok) {
    root.textContent = "This match can't be shown: " + (await answer.text());
    return;
  }
  const film = await answer.json(), seek = playFilm(root, film);
  const wanted = new URLSearchParams(location.search).get("second");
  if (wanted !== null) seek(Number(wanted));
  let soon = 0;
  root.addEventListener("moment", ({ detail: { second, running } }) => {
    document.documentElement.style.setProperty("--at", second / film.seconds); // the charts' cursor
    clearTimeout(soon);
    if (!running) soon = setTimeout(() => keepSecond(second), 200);
  });
  addEventListener("click", ({ target, clientX }) => {
    const box = target.closest(".timed")?.getBoundingClientRect();
    if (box) seek((film.seconds * (clientX - box.left - LEFT)) / (box.width - LEFT - RIGHT));
  });
}

const LEFT = 52, RIGHT = 16; // around the area of a chart: MARGINS of blocks.py

/** Keeps a moment of the film in the page's address. */
function keepSecond(second) {
  const query = new URLSearchParams(location.search);
  query.set("second", second.toFixed(2));
  history.replaceState(history.state, "", "?" + query);
}

new MutationObserver(() => {
  document.querySelectorAll("[data-film]:not([data-started])").forEach(startViewer);
}).observe(document.documentElement, { childList: true, subtree: true });

/** Says something over a picture. "" ends it. */
function say(place, words) {
  clearTimeout(place.later);
  place.toggleAttribute("data-wait", words !== "");
  place.textContent = words;
}

/** Says over a picture what is being loaded, and after a while what may take long. */
function load(place, words) {
  say(place, words);
  place.later = setTimeout(() => place.append(COMPILES), LONG_MS);
}

const LONG_MS = 4000;
const COMPILES = " The first match on a machine compiles the game, which takes a minute or two.";

/* The end of the newest live match, again and again: every element with data-live is filled. */

const LIVE_SECONDS = 25, ASK_MS = 3000;
const FINAL = [404, 422];  // answers that stay the same: the match has no film

async function startLive(root) {
  root.dataset.started = "yes";
  const find = (name) => root.querySelector(`[data-part="${name}"]`);
  const canvas = find("screen"), context = canvas.getContext("2d"), toggle = find("toggle");
  const place = find("count");
  let match = null, running = !matchMedia("(prefers-reduced-motion: reduce)").matches;

  function flip() {
    running = !running;
    toggle.textContent = running ? "pause" : "play";
  }
  function next() {  // a hidden page has no next picture, so it asks for nothing
    return new Promise(requestAnimationFrame);
  }
  async function play(film) {
    const painter = filmPainter(film, context), last = painter.count - 1;
    let now = Math.max(0, last - LIVE_SECONDS * film.fps), before = null, drawn = -1;
    while (drawn < last && root.isConnected) {
      const time = await next();
      if (running && before !== null) now = Math.min(last, now + ((time - before) / 1000) * film.fps);
      before = time;
      const width = Math.round(canvas.getBoundingClientRect().width * (devicePixelRatio || 1));
      if (width > 1 && canvas.width !== width) {
        canvas.width = width;
        canvas.height = Math.round((width * film.size[1]) / film.size[0]);
        drawn = -1;
      }
      if (Math.floor(now) !== drawn) painter.show((drawn = Math.floor(now)));
      root.dataset.frame = drawn;
    }
  }
  toggle.addEventListener("click", flip);
  canvas.addEventListener("click", flip);
  toggle.textContent = running ? "pause" : "play";
  while (root.isConnected) {
    try {
      const newest = await (await fetch("live")).json();
      const isNew = newest.match && newest.match !== match;
      if (isNew && match === null) load(place, "Loading the match …");
      const answer = isNew ? await fetch("film/" + encodeURIComponent(newest.match)) : null;
      if (isNew && answer.ok) {
        const film = await answer.json(), clock = new Date(1000 * newest.at).toLocaleTimeString();
        match = newest.match;
        say(place, "");
        find("state").textContent = `${newest.names.join(" against ")}, ended ${clock}`;
        find("replay").href = "match?match=" + encodeURIComponent(match);
        await play(film);
      } else if (isNew) {
        if (FINAL.includes(answer.status)) match = newest.match;  // else it is asked for again
        say(place, "The match can't be shown: " + (await answer.text()));
      }
    } catch {}  // the dashboard does not answer: the page says so elsewhere
    await new Promise((resolve) => setTimeout(resolve, ASK_MS));
    await next();
  }
}

new MutationObserver(() => {
  document.querySelectorAll("[data-live]:not([data-started])").forEach(startLive);
}).observe(document.documentElement, { childList: true, subtree: true });

/* On a phone the page's own tab may lie outside of the row. */
new MutationObserver((_, observer) => {
  const tab = document.querySelector('nav [aria-current="page"]');
  if (!tab) return;
  observer.disconnect();
  tab.scrollIntoView({ inline: "center", block: "nearest" });
}).observe(document.documentElement, { childList: true, subtree: true });

/* The button says what it does now, in the film's player and where a person plays. */
addEventListener("fullscreenchange", () => {
  const leave = matchMedia("(pointer:coarse)").matches ? "leave" : "leave full screen";
  const words = document.fullscreenElement ? leave : "full screen";
  document.querySelectorAll('[data-part="full"]').forEach((one) => { one.textContent = words; });
});

/* Links and forms with data-now change the page in its place: the new query, null without one. */
function chosen(event) {
  const link = event.type === "click" && !event.ctrlKey && !event.metaKey && event.target.closest("a[data-now]");
  const form = event.type === "input" && event.target.closest("form[data-now]");
  if (!link && !form) return null;
  const query = new URLSearchParams(link ? link.search : location.search);
  if (link) event.preventDefault();
  else for (const [name, value] of new FormData(form)) query.set(name, value);
  history.replaceState(history.state, "", "?" + query);
  return String(query);
}

addEventListener("submit", (event) => {
  if (event.target.matches("form[data-now]")) event.preventDefault();
});

/* A link that a new picture of the page replaces keeps the focus. */
let focused = "";
addEventListener("focusin", (event) => { focused = event.target.id; });
addEventListener("pointerdown", () => { focused = ""; });
new MutationObserver(() => {
  if (focused && document.activeElement === document.body)
    document.getElementById(focused)?.focus({ preventScroll: true });
}).observe(document.documentElement, { childList: true, subtree: true });
