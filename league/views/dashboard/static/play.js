"use strict";
/* Plays a match over a websocket: keys and choices go out, frames come in and are drawn. */

const ARROWS = { ArrowUp: "w", ArrowLeft: "a", ArrowDown: "s", ArrowRight: "d" };
const PAD = { 0: " ", 1: "j", 2: "k", 3: "l", 4: "h", 5: "g", 12: "w", 13: "s", 14: "a", 15: "d" };

function startMatch(root) {
  root.dataset.started = "yes";
  const find = (name) => root.querySelector(`[data-part="${name}"]`);
  const canvas = find("screen"), context = canvas.getContext("2d");
  const state = find("state"), choices = find("choices");
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}${root.dataset.play}`);
  const down = new Set();
  let scene = null, keys = [], sent = "", fresh = false, last = null;

  function send() {
    const held = keys.map((key) => (down.has(key) ? 1 : 0));
    const words = JSON.stringify({ keys: held });
    if (keys.length && words !== sent && socket.readyState === WebSocket.OPEN) {
      sent = words;
      socket.send(words);
    }
  }
  function keyOf(event) {
    return ARROWS[event.key] || (event.key.length === 1 ? event.key.toLowerCase() : "");
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
  function linked(words, where) {
    const link = document.createElement("a");
    link.className = "button";
    link.textContent = words;
    link.href = where;
    return link;
  }
  function draw() {
    if (!root.isConnected) {
      socket.close();
      return;
    }
    pad();
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
    const message = JSON.parse(event.data);
    if (message.problem) {
      state.textContent = message.problem;
      root.dataset.over = "yes";
    }
    if (message.begin) {
      scene = sceneFor(message.begin.still, message.begin.names, 1280);
      keys = message.begin.keys;
      state.textContent = message.note;
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
      state.textContent = message.end;
      root.dataset.over = "yes";
      offer({});
      choices.append(linked("play again", location.href));
      if (message.replay) choices.append(linked("replay", "/match?match=" + message.replay));
    }
  });
  socket.addEventListener("close", () => {
    if (!root.dataset.over && !state.textContent) state.textContent = "The connection is lost.";
  });
  document.addEventListener("keydown", (event) => press(event, true));
  document.addEventListener("keyup", (event) => press(event, false));
  window.addEventListener("blur", () => {
    down.clear();
    send();
  });
  find("full").addEventListener("click", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else root.requestFullscreen();
    canvas.focus();  // the space bar is the game's
  });
  requestAnimationFrame(draw);
}

new MutationObserver(() => {
  document.querySelectorAll("[data-play]:not([data-started])").forEach(startMatch);
}).observe(document.documentElement, { childList: true, subtree: true });
