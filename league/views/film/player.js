"use strict";
/* Plays a film (film_json in files.py) in an element with the parts of page.html. A film of several
   matches has them in `parts`, one after another. */

const WARM_UP_FRAMES = 45; // after a jump, a new scene sees these before the frame that it shows

/** Draws the pictures of a film in any order. After a jump, a new scene sees earlier frames too. */
function filmPainter(film, context) {
  const places = (film.parts || [film]).flatMap((part) =>
    part.shown.flatMap((count, frame) => Array(count).fill([part, frame]))); // by picture
  let scene = null, shown = null, next = 0;
  function show(picture) {
    const [part, wanted] = places[picture];
    if (part !== shown || wanted < next - 1 || wanted > next + WARM_UP_FRAMES) {
      scene = sceneFor(part.still, part.names, film.size[0]);
      shown = part;
      next = Math.max(0, wanted - WARM_UP_FRAMES);
    }
    while (next <= wanted) scene.see(part.frames[next++]);
    paint(context, scene.shapes());
  }
  return { show, count: places.length };
}

function playFilm(root, film) {
  const find = (name) => root.querySelector(`[data-part="${name}"]`);
  const canvas = find("screen"), context = canvas.getContext("2d");
  const seek = find("seek"), toggle = find("toggle"), clock = find("clock"), speed = find("speed");
  const painter = filmPainter(film, context), last = painter.count - 1;
  let now = 0, drawn = -1, running = true, told = null, before = null;

  function fit() {
    const box = canvas.getBoundingClientRect(), sharp = window.devicePixelRatio || 1;
    const width = Math.max(2, Math.round(box.width * sharp));
    const height = Math.round((width * film.size[1]) / film.size[0]);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
      drawn = -1;
    }
  }
  function clockText(place) {
    const seconds = Math.min(place / film.fps, film.seconds); // stands still under the verdict
    const tenths = Math.round(10 * seconds), rest = (tenths % 600) / 10;
    return `${Math.floor(tenths / 600)}:${rest.toFixed(1).padStart(4, "0")}`;
  }
  function show() {
    fit();
    const place = Math.min(last, Math.floor(now));
    if (place !== drawn) {
      painter.show(place);
      drawn = place;
      seek.value = place;
      clock.textContent = `${clockText(place)} / ${clockText(last)}`;
    }
    if (told !== `${place} ${running}`) {
      told = `${place} ${running}`;
      const second = Math.min(place / film.fps, film.seconds);
      root.dispatchEvent(new CustomEvent("moment", { detail: { second, running } }));
    }
    toggle.textContent = running ? "pause" : now >= last ? "again" : "play";
  }
  function tick(time) {
    if (running && before !== null) {
      now = Math.min(last, now + ((time - before) / 1000) * film.fps * speed.value);
    }
    if (now >= last) running = false;
    before = time;
    show();
    requestAnimationFrame(tick);
  }
  function go(place) {
    now = Math.max(0, Math.min(last, place || 0));
  }
  function press() {
    if (!running && now >= last) now = 0;
    running = !running;
  }
  seek.max = last;
  seek.addEventListener("input", () => {
    running = false;
    go(Number(seek.value));
  });
  for (const [name, step] of [["back", -1], ["forward", 1]]) {
    find(name).addEventListener("click", () => {
      running = false;
      go(Math.floor(now) + step);
    });
  }
  toggle.addEventListener("click", press);
  canvas.addEventListener("click", press);
  find("full").addEventListener("click", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else root.requestFullscreen();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input:not([type=range]), select, button")) return;
    const steps = {
      ArrowLeft: -1, ArrowRight: 1, PageUp: -film.fps, PageDown: film.fps, Home: -last, End: last,
    };
    if (event.key === " ") press();
    else if (event.key in steps) {
      running = false;
      go(Math.floor(now) + steps[event.key]);
    } else return;
    event.preventDefault();
  });
  // page.html#frame=120 shows one picture
  const wanted = new URLSearchParams(location.hash.slice(1)).get("frame");
  if (wanted !== null) {
    running = false;
    go(Number(wanted));
  }
  requestAnimationFrame(tick);
  return (second) => {
    running = false;
    go(Math.round(second * film.fps));
  };
}
