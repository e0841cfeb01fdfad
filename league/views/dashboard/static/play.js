"use strict";
/* Plays a match over a websocket: keys and choices go out, frames come in and are drawn. A press of
   the button begins it. Its address alone does not, because another site may open the page. */

const ARROWS = { ArrowUp: "w", ArrowLeft: "a", ArrowDown: "s", ArrowRight: "d" };
const PAD = { 0: " ", 1: "j", 2: "k", 3: "l", 4: "h", 5: "g", 12: "w", 13: "s", 14: "a", 15: "d" };
const SIGNS = { w: "↑", a: "←", s: "↓", d: "→", " ": "space" };
const STALLED_MS = 3000, GO_MS = 700, ENOUGH_WINS = 2;
let leave = () => {};  // leaves the match before
let loading = "";  // the match that the page has asked for and that has not begun yet

/** Begins a match. `wins` are those of a best of three so far, by seat. */
function startMatch(root, asked, wins = [0, 0]) {
  leave();
  const left = new AbortController(), { signal } = left;
  const find = (name) => root.querySelector(`[data-part="${name}"]`);
  const canvas = find("screen"), context = canvas.getContext("2d");
  const state = find("state"), choices = find("choices");
  const address = new URL("play/socket?" + asked, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  const down = new Set();
  let scene = null, keys = [" "], sent = "", fresh = false, last = null;
  let note = "", heard = null, stalls = false, person = null;
  leave = () => {
    left.abort();
    socket.close();
    loading = "";
  };
  loading = String(asked);
  root.hidden = false;
  canvas.focus();  // from here on, the keys are the game's
  delete root.dataset.over;
  delete root.dataset.frame;
  state.textContent = "";
  choices.replaceChildren();
  choices.dataset.shown = "";
  load(find("count"), "Loading the players …");
  root.scrollIntoView({ block: "start" });

  function send() {
    const held = keys.map((key) => (down.has(key) ? 1 : 0));
    for (const button of find("pad").querySelectorAll("button"))
      button.toggleAttribute("data-held", down.has(button.dataset.key));
    const words = JSON.stringify({ keys: held });
    if (scene && keys.length && words !== sent && socket.readyState === WebSocket.OPEN) {
      sent = words;
      socket.send(words);
    }
  }
  function keyOf({ code }) {  // by the key's place on the keyboard, whatever layout is set
    const found = /^(?:Key|Digit|Numpad)(.)$/.exec(code);
    return ARROWS[code] || (code === "Space" ? " " : found ? found[1].toLowerCase() : "");
  }
  function press(event, isDown) {
    if (event.target.closest("input, select")) return;
    if (root.dataset.over && event.target.closest("button, a, summary")) return;
    if (event.ctrlKey || event.metaKey) return;
    if (event.code === "Enter" && isDown && !event.repeat) find("again")?.click();
    const key = keyOf(event);
    if (!keys.includes(key)) return;
    if (isDown) down.add(key);
    else down.delete(key);
    send();
    event.preventDefault();
  }
  function touched(key, words) {
    const button = document.createElement("button");
    button.textContent = "wasd".includes(key) ? SIGNS[key] : words || SIGNS[key] || key;
    button.setAttribute("aria-label", words || key);
    button.dataset.key = key;
    const hold = (isDown) => (event) => {
      event.preventDefault();
      if (isDown) down.add(key);
      else down.delete(key);
      send();
    };
    button.addEventListener("pointerdown", hold(true), { signal });
    for (const name of ["pointerup", "pointercancel", "pointerleave", "contextmenu"]) {
      button.addEventListener(name, hold(false), { signal });
    }
    return button;
  }
  function count(word) {
    say(find("count"), "");
    find("count").textContent = word;
    if (word === "Go!") setTimeout(() => !signal.aborted && count(""), GO_MS);
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
  /* After a person's match, `winner` is the seat that won, or null. */
  function finish(words, winner) {
    loading = "";
    root.dataset.over = "yes";
    offer({});
    count("");
    let isDecided = person === null || winner === undefined;
    if (!isDecided) {
      if (winner !== null) wins = wins.map((won, seat) => won + (seat === winner));
      isDecided = Math.max(...wins) === ENOUGH_WINS;
      const ahead = wins[person], behind = wins[1 - person];
      words += isDecided
        ? ` You ${ahead > behind ? "win" : "lose"} the best of three, ${ahead} to ${behind}.`
        : ` Best of three: ${ahead} to ${behind}.`;
    }
    state.textContent = words;
    const hint = matchMedia("(pointer:coarse)").matches ? "" : " (Enter)";
    const again = document.createElement("button");
    again.dataset.part = "again";
    again.textContent = isDecided ? "play again" : "next match" + hint;
    again.addEventListener("click", () => startMatch(root, asked, isDecided ? [0, 0] : wins));
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
      loading = "";
      count("");
      scene = sceneFor(message.begin.still, message.begin.names, 1280);
      scene.hidesKeys = matchMedia("(pointer:coarse)").matches;  // its buttons may lie there
      ({ keys, person } = message.begin);
      find("pad").replaceChildren(
        ...["wasd", ""].map((half) => {
          const group = document.createElement("div");
          const own = keys.filter((key) => "wasd".includes(key) === (half !== ""));
          const words = (key) => message.begin.words[keys.indexOf(key)];
          group.replaceChildren(...own.map((key) => touched(key, words(key))));
          return group;
        }),
      );
      state.textContent = note = message.note;
      canvas.focus();
      root.scrollIntoView({ block: "start" });
    }
    if (message.frame) {
      scene.see(message.frame);
      last = message.frame.frame;
      fresh = true;
    }
    if (message.count) count(message.count);
    if (message.choices) offer(message.choices);
    if (message.end) {
      finish(message.end, message.winner);
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
  if (event.submitter?.name) asked.set(event.submitter.name, event.submitter.value);
  history.replaceState(null, "", "?" + asked);
  if (loading === String(asked)) return;
  startMatch(document.querySelector("[data-play]"), asked);
});
