"use strict";
/* Plays a match over a websocket: keys and choices go out, frames come in and are drawn. A press of
   the button begins it. Its address alone does not, because another site may open the page. */

const ARROWS = { ArrowUp: "w", ArrowLeft: "a", ArrowDown: "s", ArrowRight: "d" };
const PAD = { 0: " ", 1: "j", 2: "k", 3: "l", 4: "h", 5: "g", 12: "w", 13: "s", 14: "a", 15: "d" };
const STALLED_MS = 3000;
let leave = () => {};  // leaves the match before

function startMatch(root, asked) {
  leave();
  const left = new AbortController(), { signal } = left;
  const find = (name) => root.querySelector(`[data-part="${name}"]`);
  const canvas = find("screen"), context = canvas.getContext("2d");
  const state = find("state"), choices = find("choices");
  const address = new URL("play/socket?" + asked, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  const down = new Set();
  let scene = null, keys = [], sent = "", fresh = false, last = null;
  let note = "", heard = null, stalls = false;
  leave = () => {
    left.abort();
    socket.close();
  };
  root.hidden = false;
  delete root.dataset.over;
  delete root.dataset.frame;
  state.textContent = "loading the players …";
  choices.replaceChildren();
  choices.dataset.shown = "";

  function send() {
    const held = keys.map((key) => (down.has(key) ? 1 : 0));
    const words = JSON.stringify({ keys: held });
    if (keys.length && words !== sent && socket.readyState === WebSocket.OPEN) {
      sent = words;
      socket.send(words);
    }
  }
  function keyOf({ code }) {  // by the key's place on the keyboard, whatever layout is set
    const found = /^(?:Key|Digit|Numpad)(.)$/.exec(code);
    return ARROWS[code] || (code === "Space" ? " " : found ? found[1].toLowerCase() : "");
  }
  function press(event, isDown) {
    if (event.target.closest("input, select, button") || event.ctrlKey || event.metaKey) return;
    const key = keyOf(event);
    if (!keys.includes(key)) return;
    if (isDown) down.add(key);
    else down.delete(key);
    send();
    event.preventDefault();
  }
  function pad() {
    for (const one of navigator.getGamepads ? navigator.getGamepads() : []) {
      if (!one) continue;
      const held = new Set();
      one.buttons.forEach((button, number) => {
        if (button.pressed && PAD[number]) held.add(PAD[number]);
      });
      const [x, y] = one.axes;
      if (x < -0.4) held.add("a");
      if (x > 0.4) held.add("d");
      if (y < -0.4) held.add("w");
      if (y > 0.4) held.add("s");
      if (one.buttons.some((button) => button.pressed) || held.size || pad.was) {
        Object.values(PAD).forEach((key) => down.delete(key));
        held.forEach((key) => down.add(key));
        pad.was = held.size > 0;
        send();
      }
    }
  }
  function offer(offered) {
    const numbers = Object.keys(offered);
    if (numbers.join() === choices.dataset.shown) return;
    choices.dataset.shown = numbers.join();
    choices.replaceChildren(
      ...numbers.map((number) => {
        const button = document.createElement("button");
        button.textContent = offered[number];
        button.addEventListener("click", () => socket.send(JSON.stringify({ choice: Number(number) })));
        return button;
      }),
    );
  }
  function finish(words) {
    state.textContent = words;
    root.dataset.over = "yes";
    offer({});
    const again = document.createElement("button");
    again.dataset.part = "again";
    again.textContent = "play again";
    again.addEventListener("click", () => startMatch(root, asked));
    choices.append(again);
  }
  function linked(words, where) {
    const link = document.createElement("a");
    link.className = "button";
    link.textContent = words;
    link.href = where;
    return link;
  }
  function draw() {
    if (!root.isConnected) leave();
    if (signal.aborted) return;
    pad();
    const isAwaited = heard !== null && !root.dataset.over && !choices.childElementCount;
    const isLate = isAwaited && performance.now() - heard > STALLED_MS;
    if (isLate !== stalls && !root.dataset.over) {
      stalls = isLate;
      state.textContent = stalls ? "The dashboard does not answer: waiting …" : note;
    }
    if (fresh && scene) {
      const box = canvas.getBoundingClientRect(), sharp = window.devicePixelRatio || 1;
      const width = Math.max(2, Math.round(box.width * sharp));
      if (canvas.width !== width) {
        canvas.width = width;
        canvas.height = Math.round((width * 9) / 16);
      }
      paint(context, scene.shapes());
      fresh = false;
      root.dataset.frame = last;
    }
    requestAnimationFrame(draw);
  }
  socket.addEventListener("message", (event) => {
    if (signal.aborted) return;
    const message = JSON.parse(event.data);
    heard = performance.now();
    if (message.problem) finish(message.problem);
    if (message.begin) {
      scene = sceneFor(message.begin.still, message.begin.names, 1280);
      keys = message.begin.keys;
      state.textContent = note = message.note;
      canvas.focus();
      root.scrollIntoView({ block: "center" });
    }
    if (message.frame) {
      scene.see(message.frame);
      last = message.frame.frame;
      fresh = true;
    }
    if (message.choices) offer(message.choices);
    if (message.end) {
      finish(message.end);
      if (message.replay) choices.append(linked("replay", "match?match=" + message.replay));
    }
  });
  socket.addEventListener("close", () => {
    if (signal.aborted || root.dataset.over) return;
    finish("The connection is lost: this match does not count.");
  });
  document.addEventListener("keydown", (event) => press(event, true), { signal });
  document.addEventListener("keyup", (event) => press(event, false), { signal });
  window.addEventListener("blur", () => {
    down.clear();
    send();
  }, { signal });
  find("full").addEventListener("click", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else root.requestFullscreen();
    canvas.focus();  // the space bar is the game's
  }, { signal });
  requestAnimationFrame(draw);
}

document.addEventListener("submit", (event) => {
  if (!event.target.closest("[data-picker]")) return;
  event.preventDefault();
  const asked = new URLSearchParams(new FormData(event.target));
  history.replaceState(null, "", "?" + asked);
  startMatch(document.querySelector("[data-play]"), asked);
});
