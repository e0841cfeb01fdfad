"use strict";
/* Starts the films on a page: every element with data-film is filled once. */

async function startViewer(root) {
  root.dataset.started = "yes";
  const answer = await fetch(root.dataset.film);
  if (!answer.ok) {
    root.textContent = "This match can't be shown: " + (await answer.text());
    return;
  }
  playFilm(root, await answer.json());
}

new MutationObserver(() => {
  document.querySelectorAll("[data-film]:not([data-started])").forEach(startViewer);
}).observe(document.documentElement, { childList: true, subtree: true });

/* On a phone the page's own tab may lie outside of the row. */
new MutationObserver((_, observer) => {
  const tab = document.querySelector('nav [aria-current="page"]');
  if (!tab) return;
  observer.disconnect();
  tab.scrollIntoView({ inline: "center", block: "nearest" });
}).observe(document.documentElement, { childList: true, subtree: true });
