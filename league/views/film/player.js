"use strict";
/* Draws the pictures of league/games/render/picture.py on a canvas. Nothing here knows the game: what is
   drawn is decided in Python. kumitePaint(context, picture, stills) draws one picture
   {size, layers} into the whole canvas; kumitePlayer(root, film) plays a film {size, fps, stills, pictures}. */

function kumitePaint(context, size, layers, stills) {
  const zoom = context.canvas.height / size[1];
  const marks = {
    p(colour, flat) {
      context.fillStyle = colour;
      trace(flat);
      context.closePath();
      context.fill();
    },
    l(colour, width, flat) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.lineCap = context.lineJoin = "round";
      trace(flat);
      context.stroke();
    },
    c(colour, x, y, r) {
      context.fillStyle = colour;
      disc(x, y, r);
      context.fill();
    },
    o(colour, width, x, y, r) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      disc(x, y, r);
      context.stroke();
    },
    g(colour, x, y, r) {
      const fade = context.createRadialGradient(x, y, 0, x, y, r);
      const opacity = colour.length > 7 ? parseInt(colour.slice(7), 16) : 255;
      for (let part = 0; part <= 4; part++) {
        const left = Math.round(opacity * Math.pow(1 - part / 4, 1.6));
        fade.addColorStop(part / 4, colour.slice(0, 7) + left.toString(16).padStart(2, "0"));
      }
      context.fillStyle = fade;
      disc(x, y, r);
      context.fill();
    },
    b(colour, x, y, width, height, r) {
      context.fillStyle = colour;
      context.beginPath();
      context.roundRect(x, y, width, height, r);
      context.fill();
    },
    t(colour, size, x, y, side, words) {
      context.fillStyle = colour;
      context.font = `600 ${size}px system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;
      context.textAlign = side < 0 ? "left" : side > 0 ? "right" : "center";
      context.textBaseline = "middle";
      context.fillText(words, x, y);
    },
    s(colours) {
      context.save(); // other shapes of this layer follow
      context.setTransform(1, 0, 0, 1, 0, 0);
      const shade = context.createLinearGradient(0, 0, 0, context.canvas.height);
      colours.forEach((colour, place) => shade.addColorStop(place / Math.max(1, colours.length - 1), colour));
      context.fillStyle = shade;
      context.fillRect(0, 0, context.canvas.width, context.canvas.height);
      context.restore();
    },
  };
  function trace(flat) {
    context.beginPath();
    for (let i = 0; i < flat.length; i += 2) context.lineTo(flat[i], flat[i + 1]);
  }
  function disc(x, y, r) {
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
  }
  for (const [[scale, dx, dy], shapes] of layers) {
    context.setTransform(scale * zoom, 0, 0, scale * zoom, dx * zoom, dy * zoom);
    for (const [kind, ...rest] of typeof shapes === "number" ? stills[shapes] : shapes) marks[kind](...rest);
  }
}

function kumitePlayer(root, film) {
  const find = (name) => root.querySelector(`[data-part="${name}"]`);
  const canvas = find("screen"), context = canvas.getContext("2d");
  const seek = find("seek"), toggle = find("toggle"), clock = find("clock"), speed = find("speed");
  const last = film.pictures.length - 1;
  let now = 0, drawn = -1, running = true, before = null;

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
  function told(place) {
    const seconds = Math.min(place / film.fps, film.seconds); // it stands while the verdict is shown
    return `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
  }
  function show() {
    fit();
    const place = Math.min(last, Math.floor(now));
    if (place !== drawn) {
      kumitePaint(context, film.size, film.pictures[place], film.stills);
      drawn = place;
      seek.value = place;
      clock.textContent = `${told(place)} / ${told(last)}`;
    }
    toggle.textContent = running ? "pause" : now >= last ? "again" : "play";
  }
  function tick(time) {
    if (running && before !== null) now = Math.min(last, now + ((time - before) / 1000) * film.fps * speed.value);
    if (now >= last) running = false;
    before = time;
    show();
    requestAnimationFrame(tick);
  }
  function go(place) {
    now = Math.max(0, Math.min(last, place));
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
  toggle.addEventListener("click", press);
  canvas.addEventListener("click", press);
  find("full").addEventListener("click", () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen()));
  document.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -film.fps, PageDown: film.fps, Home: -last, End: last };
    if (event.key === " ") press();
    else if (event.key in steps) {
      running = false;
      go(Math.floor(now) + steps[event.key]);
    } else return;
    event.preventDefault();
  });
  const wanted = new URLSearchParams(location.hash.slice(1)).get("frame"); // page.html#frame=120 shows one
  if (wanted !== null) {
    running = false;
    go(Number(wanted));
  }
  requestAnimationFrame(tick);
}
