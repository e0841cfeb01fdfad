"use strict";
/* Draws matches: a game's frames (frames.py) become shapes, and shapes become pixels.

   const scene = sceneFor(still, names, width);  // one match, on a picture of width x HEIGHT
   scene.see(frame);                             // every frame in turn
   paint(canvas.getContext("2d"), scene.shapes());

   A frame with a `verdict` ({text, winner}), a `caption` (a line at the bottom) or a `title` (lines
   over the darkened picture) shows them over the match. A scene remembers hits and
   follows the fighters softly, so it has to see some frames before the one that is shown.

   Shapes are lists, in pixels of a picture HEIGHT high; painter.py paints the same ones.
     ["polygon", colour, [x, y, ...]]
     ["line", colour, width, [x, y, ...]]                round ends and joints
     ["disc", colour, x, y, r]
     ["ring", colour, width, x, y, r]
     ["glow", colour, x, y, r]                           fades out towards r
     ["box", colour, left, top, width, height, r]        r: radius of the corners
     ["text", colour, size, x, y, align, text]           x is its left (align -1), middle or right (1)
     ["sky", [colour, ...]]                              the whole picture, from top to bottom
   Colours are "#rrggbb" or "#rrggbbaa". Points and lengths of scenes are in units of the game, y
   down, unless they say pixels. */

const HEIGHT = 720;

// --- colours

const SKY = ["#0b0d1f", "#1d1a45", "#4a2f63", "#8a4a62"];
const SEATS = ["#ff5a4f", "#2fc6ff"];
const DARK_SEATS = ["#9c2733", "#176a9e"];
const INK = "#0c0c18", SKIN = "#ffe0c2", WHITE = "#ffffff", FLASH = "#fff3b0", STEEL = "#c9d2e3";
const WOOD = "#a9744a", HAZARD = "#ffc83d", PANEL = "#0c0e20c8", DIM = "#8f94b3";
const HEAT = [
  [0, "#ffffff"], [50, "#ffe36b"], [100, "#ff9838"], [160, "#ff3b3b"], [300, "#b0123a"],
];

function clamp(value, least, most) {
  return Math.min(Math.max(value, least), most);
}

function hex(value) {
  return Math.round(value).toString(16).padStart(2, "0");
}

/** The colour at an opacity from 0 to 1. */
function faded(colour, opacity) {
  return colour.slice(0, 7) + hex(255 * clamp(opacity, 0, 1));
}

/** Mixes `share` of the colour `other` into `one`. */
function mixed(one, other, share) {
  const part = clamp(share, 0, 1);
  const channel = (colour, at) => parseInt(colour.slice(at, at + 2), 16);
  const mix = (at) => hex(channel(one, at) * (1 - part) + channel(other, at) * part);
  return "#" + mix(1) + mix(3) + mix(5);
}

/** Colour of a damage figure: white when fresh, then yellow, orange, red. */
function heat(damage) {
  for (let step = 1; step < HEAT.length; step++) {
    const [low, cool] = HEAT[step - 1], [high, hot] = HEAT[step];
    if (damage < high) return mixed(cool, hot, (damage - low) / (high - low));
  }
  return HEAT[HEAT.length - 1][1];
}

// --- shapes

/** Adds shapes to a list, through a transform from its own coordinates to pixels. */
class Brush {
  constructor(shapes, { across = [1, 0], down = [0, 1], origin = [0, 0], size = 1 } = {}) {
    this.list = shapes;
    this.across = across;
    this.down = down;
    this.origin = origin;
    this.size = size;
  }

  /** A brush with its origin at (x, y), turned (radians), mirrored where `side` is -1. */
  at(x, y, { turn = 0, side = 1, size = 1 } = {}) {
    const cos = Math.cos(turn) * size, sin = Math.sin(turn) * size;
    return new Brush(this.list, {
      across: this.direction(side * cos, sin),
      down: this.direction(-side * sin, cos),
      origin: this.point(x, y),
      size: this.size * size,
    });
  }

  direction(x, y) {
    return [this.across[0] * x + this.down[0] * y, this.across[1] * x + this.down[1] * y];
  }

  point(x, y) {
    const [dx, dy] = this.direction(x, y);
    return [this.origin[0] + dx, this.origin[1] + dy];
  }

  add(kind, colour, ...numbers) {
    const short = (value) => (typeof value === "number" ? Math.round(value * 10) / 10 : value);
    this.list.push([kind, colour, ...numbers.map(short)]);
  }

  path(points) {
    return points.flatMap(([x, y]) => this.point(x, y)).map((value) => Math.round(value * 10) / 10);
  }

  polygon(colour, points) {
    this.add("polygon", colour, this.path(points));
  }

  line(colour, width, ...points) {
    this.add("line", colour, width * this.size, this.path(points));
  }

  disc(colour, x, y, r) {
    this.add("disc", colour, ...this.point(x, y), r * this.size);
  }

  ring(colour, width, x, y, r) {
    this.add("ring", colour, width * this.size, ...this.point(x, y), r * this.size);
  }

  glow(colour, x, y, r) {
    this.add("glow", colour, ...this.point(x, y), r * this.size);
  }

  /** An upright box, whatever the brush's turn. */
  box(colour, x, y, width, height, r = 0) {
    const [x0, y0] = this.point(x, y), [x1, y1] = this.point(x + width, y + height);
    const size = [Math.abs(x1 - x0), Math.abs(y1 - y0)];
    this.add("box", colour, Math.min(x0, x1), Math.min(y0, y1), ...size, r * this.size);
  }

  text(colour, size, x, y, text, align = 0) {
    const pixels = Math.max(1, size * this.size);
    this.list.push(["text", colour, pixels, ...this.path([[x, y]]), align, text]);
  }
}

/** Paints shapes over the whole canvas of a 2D context. */
function paint(context, shapes) {
  const zoom = context.canvas.height / HEIGHT;
  const trace = (path) => {
    context.beginPath();
    for (let at = 0; at < path.length; at += 2) context.lineTo(path[at], path[at + 1]);
  };
  const circle = (x, y, r) => {
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
  };
  const painters = {
    polygon(colour, path) {
      context.fillStyle = colour;
      trace(path);
      context.fill();
    },
    line(colour, width, path) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      trace(path);
      context.stroke();
    },
    disc(colour, x, y, r) {
      context.fillStyle = colour;
      circle(x, y, r);
      context.fill();
    },
    ring(colour, width, x, y, r) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      circle(x, y, r);
      context.stroke();
    },
    glow(colour, x, y, r) {
      const opacity = colour.length > 7 ? parseInt(colour.slice(7), 16) / 255 : 1;
      const gradient = context.createRadialGradient(x, y, 0, x, y, r);
      for (const stop of [0, 0.25, 0.5, 0.75, 1]) {
        gradient.addColorStop(stop, faded(colour, opacity * Math.pow(1 - stop, 1.6)));
      }
      context.fillStyle = gradient;
      circle(x, y, r);
      context.fill();
    },
    box(colour, left, top, width, height, r) {
      context.fillStyle = colour;
      context.beginPath();
      context.roundRect(left, top, width, height, r);
      context.fill();
    },
    text(colour, size, x, y, align, text) {
      context.fillStyle = colour;
      context.font = `600 ${size}px system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;
      context.textAlign = align < 0 ? "left" : align > 0 ? "right" : "center";
      context.fillText(text, x, y);
    },
    sky(colours) {
      const gradient = context.createLinearGradient(0, 0, 0, HEIGHT);
      colours.forEach((colour, at) => gradient.addColorStop(at / (colours.length - 1), colour));
      context.fillStyle = gradient;
      context.fillRect(0, 0, context.canvas.width / zoom, HEIGHT);
    },
  };
  context.setTransform(zoom, 0, 0, zoom, 0, 0);
  context.lineCap = context.lineJoin = "round";
  context.textBaseline = "middle";
  for (const [kind, ...rest] of shapes) painters[kind](...rest);
}

// --- camera

/** Keeps the fighters in view, follows them softly, and never looks past the blast zone. */
class Camera {
  constructor(width, blast) {
    this.width = width;
    this.aspect = width / HEIGHT;
    this.limits = [blast[0] + 0.6, blast[1] + 0.6]; // most that is seen beyond the centre
    this.blast = blast;
    this.tallest = 2 * Math.max(this.limits[1], this.limits[0] / this.aspect);
    this.tall = 0; // units from top to bottom; 0 before the first frame
  }

  /** Moves one frame's worth towards a view of these points; the first time all the way. */
  follow(points) {
    const inside = ([x, y]) => [
      clamp(x, -this.blast[0], this.blast[0]),
      clamp(y, -this.blast[1], this.blast[1]),
    ];
    const held = points.length ? points.map(inside) : [[0, 0]];
    const middle = (axis) => {
      const values = held.map((point) => point[axis]);
      return (Math.min(...values) + Math.max(...values)) / 2;
    };
    const x = middle(0) * 0.85, y = middle(1) * 0.85 + 0.15;
    const tall = clamp(this.heightFor(held, x, y, 2.3), 8.2, this.tallest);
    if (this.tall === 0) {
      [this.x, this.y, this.tall] = [x, y, tall];
      return;
    }
    this.x += (x - this.x) * 0.14;
    this.y += (y - this.y) * 0.14;
    this.tall += (tall - this.tall) * (tall > this.tall ? 0.25 : 0.06);
    const needed = this.heightFor(held, this.x, this.y, 1.15);
    this.tall = Math.min(Math.max(this.tall, needed), this.tallest);
    const overX = this.limits[0] - (this.tall / 2) * this.aspect;
    const overY = this.limits[1] - this.tall / 2;
    this.x = overX > 0 ? clamp(this.x, -overX, overX) : 0;
    this.y = overY > 0 ? clamp(this.y, -overY, overY) : 0;
  }

  /** Height at which all points are seen from (x, y) with `room` around them. */
  heightFor(points, x, y, room) {
    const across = Math.max(...points.map((point) => Math.abs(point[0] - x))) + room;
    const down = Math.max(...points.map((point) => Math.abs(point[1] - y))) + room;
    return 2 * Math.max(down, across / this.aspect);
  }

  /** A brush for what lies at a depth: 1 is the stage, 0 infinitely far. `shake` in units. */
  brush(shapes, depth, shake) {
    const near = HEIGHT / this.tall, far = HEIGHT / this.tallest;
    const scale = far + (near - far) * depth;
    const x = this.width / 2 + (shake[0] - this.x) * depth * scale;
    const y = HEIGHT / 2 + (shake[1] - this.y) * depth * scale;
    return new Brush(shapes).at(x, y, { size: scale });
  }
}

// --- scenery

/** A fixed value within plus or minus `size` that looks random. */
function scatter(number, size) {
  const value = Math.sin(number * 12.9898 + 4.1) * 43758.5453;
  return size * (2 * (value - Math.floor(value)) - 1);
}

function drawMoon(brush) {
  brush.glow("#ffe9c455", 7, -4.6, 4.6);
  brush.disc("#ffeccd", 7, -4.6, 1.15);
  brush.disc("#f3d9b2", 6.7, -4.85, 0.22);
  brush.disc("#f3d9b2", 7.35, -4.3, 0.3);
  brush.disc("#f3d9b2", 7.2, -5.1, 0.12);
  for (let star = 0; star < 40; star++) {
    const y = Math.abs(scatter(star + 99, 8.5)) - 8.5;
    brush.disc(faded(WHITE, 0.25 + 0.5 * Math.abs(scatter(star, 1))), scatter(star, 30), y, 0.022);
  }
}

/** A row of sheds, cranes and towers from far left to far right. */
function drawSkyline(brush, { seed, colour, top, step, windows }) {
  let x = -26;
  for (let number = seed; x < 26; number++) {
    const width = step * (1 + 0.5 * scatter(number, 1)), roof = top + 1.5 * scatter(number + 7, 1);
    drawBuilding(brush, colour, x, width, roof, number, windows);
    x += width + 0.25 * step * Math.abs(scatter(number + 3, 1));
  }
}

function drawBuilding(brush, colour, x, width, roof, number, windows) {
  brush.box(colour, x, roof, width, 14 - roof);
  if (number % 3 === 0) {
    brush.polygon(colour, [[x, roof], [x + width / 2, roof - 0.7], [x + width, roof]]);
  } else if (number % 3 === 1) {
    brush.box(colour, x + width * 0.3, roof - 1.1, 0.12, 1.2);
  }
  for (let floor = 0; windows && floor < 5; floor++) {
    const lit = ["#ffd98a30", "#ffd98a60", "#8ad4ff38"][(number + floor) % 3];
    const across = 0.12 + 0.72 * Math.abs(scatter(number * 5 + floor, 1));
    brush.box(lit, x + width * across, roof + 0.5 + 0.75 * floor, 0.2, 0.3);
  }
}

/** The solid blocks, and the rim of the blast zone. */
function drawGrounds(brush, solids, [wide, tall]) {
  const rim = [[-wide, -tall], [wide, -tall], [wide, tall], [-wide, tall], [-wide, -tall]];
  brush.line("#6b2c4c", 0.07, ...rim);
  solids.forEach((solid, number) => drawGround(brush, solid, String(number + 1).padStart(2, "0")));
}

function drawGround(brush, [left, top, right, bottom], label) {
  const width = right - left, height = bottom - top;
  brush.box("#00000050", left - 0.12, top + 0.12, width + 0.24, height + 0.1, 0.1);
  brush.box("#2c2f45", left, top, width, height, 0.08);
  const rows = Math.max(1, Math.round((height - 0.6) / 1.2)), deep = (height - 0.55) / rows;
  const columns = Math.max(1, Math.round(width / 1.7)), wide = (width - 0.2) / columns;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const shade = mixed("#3d415c", "#262940", row / rows + 0.15 * ((row + column) % 2));
      const x = left + 0.1 + column * wide, y = top + 0.45 + row * deep;
      brush.box(shade, x + 0.04, y + 0.04, wide - 0.08, deep - 0.08, 0.06);
    }
  }
  brush.text("#ffffff18", 1.5, (left + right) / 2, top + 0.45 + deep * 0.95, label);
  brush.box("#6d7393", left, top, width, 0.34, 0.06);
  drawStripes(brush, left, top + 0.09, 1.05, 0.16); // the edges, where a fighter falls off
  drawStripes(brush, right - 1.05, top + 0.09, 1.05, 0.16);
  brush.box("#dfe5f7", left, top, width, 0.07, 0.03);
}

function drawStripes(brush, left, top, width, height) {
  brush.box("#1b1b26", left, top, width, height);
  const count = Math.max(1, Math.round(width / 0.3)), step = width / count, bottom = top + height;
  for (let number = 0; number < count; number++) {
    const x = left + number * step;
    const half = x + step / 2;
    brush.polygon(HAZARD, [[x, bottom], [half, top], [x + step, top], [half, bottom]]);
  }
}

/** A crane's beam on two chains, with a light below; the brush's origin is its middle. */
function drawPlatform(brush, half, deep) {
  for (const side of [-0.8, 0.8]) {
    brush.line("#565a78", 0.05, [side * half, 0], [side * half * 0.6, -30]);
  }
  brush.glow("#ffc83d38", 0, deep, half * 0.9);
  brush.box(INK, -half - 0.04, -deep - 0.04, 2 * half + 0.08, 2 * deep + 0.08, 0.08);
  drawStripes(brush, -half, -deep + 0.05, 2 * half, 2 * deep - 0.05);
  brush.box("#fff3cf", -half, -deep, 2 * half, 0.06, 0.03);
}

// --- weapons

/** A weapon at the brush's origin, pointing along x; its tip is at `reach` if that is far. */
function drawWeapon(brush, kind, reach = 0, opacity = 1) {
  const tint = (colour) => (opacity < 1 ? faded(colour, opacity) : colour);
  const ink = tint(INK), wood = tint(WOOD), steel = tint(STEEL), hazard = tint(HAZARD);
  if (kind === "spear") {
    const tip = Math.max(reach, 0.95);
    brush.line(ink, 0.13, [-0.5, 0], [tip - 0.2, 0]);
    brush.polygon(ink, [[tip - 0.42, -0.16], [tip + 0.08, 0], [tip - 0.42, 0.16]]);
    brush.line(wood, 0.07, [-0.5, 0], [tip - 0.3, 0]);
    brush.polygon(steel, [[tip - 0.37, -0.1], [tip, 0], [tip - 0.37, 0.1]]);
    brush.line(hazard, 0.09, [tip - 0.4, -0.04], [tip - 0.4, 0.04]);
  } else if (kind === "hammer") {
    const tip = Math.max(reach, 0.72);
    const block = (left, top, right, bottom) =>
      [[left, top], [right, top], [right, bottom], [left, bottom]];
    brush.line(ink, 0.14, [-0.24, 0], [tip - 0.1, 0]);
    brush.polygon(ink, block(tip - 0.32, -0.37, tip + 0.06, 0.37));
    brush.line(wood, 0.08, [-0.24, 0], [tip - 0.1, 0]);
    brush.polygon(steel, block(tip - 0.27, -0.32, tip, 0.32));
    brush.polygon(tint("#8d97ad"), block(tip - 0.27, 0.1, tip, 0.32));
    brush.line(hazard, 0.06, [tip - 0.13, -0.3], [tip - 0.13, 0.3]);
  }
}

/** A weapon on the ground glows; it is pale until it can be taken, and blinks at last. */
function drawLyingWeapon(brush, weapon, frame) {
  if (weapon.frames_left < 75 && Math.floor(frame / 4) % 2) return;
  const opacity = weapon.ready ? 1 : 0.45, y = weapon.y - 0.1 + 0.05 * Math.sin(frame * 0.12);
  brush.glow(faded(HAZARD, 0.45 * opacity), weapon.x, y, 0.95);
  drawWeapon(brush.at(weapon.x, y, { turn: -0.5 }).at(-0.25, 0), weapon.type, 0, opacity);
}

// --- poses: joints from the middle of the body, x forward; hands and feet are [front, back]

const FEET = 0.45;
const NEUTRAL = {
  hip: [0, 0.13],
  chest: [0.03, -0.07],
  head: [0.05, -0.34],
  hands: [[0.3, -0.06], [0.13, 0.02]],
  feet: [[0.17, FEET], [-0.16, FEET]],
  turn: 0, // radians, forward
  blade: -0.9, // angle of the weapon in hand: 0 forward, negative up
  face: "calm", // calm, fierce, hurt or glad
};
const POSES = {
  turnaround: {
    chest: [-0.06, -0.06], head: [-0.1, -0.33], hands: [[0.2, 0.04], [-0.26, -0.1]],
    feet: [[0.27, FEET], [-0.05, FEET]],
  },
  backdash: {
    chest: [-0.05, -0.05], head: [-0.03, -0.32], hands: [[0.3, -0.12], [0.12, -0.12]],
    feet: [[0.36, FEET - 0.06], [0.06, FEET]], turn: -0.2, face: "fierce",
  },
  dodge: {
    hip: [-0.05, 0.18], chest: [0.03, 0.02], head: [0.12, -0.2],
    hands: [[0.26, -0.1], [0.2, -0.02]], feet: [[0.2, FEET - 0.02], [-0.2, FEET - 0.02]], turn: 0.25,
  },
};

/** The pose outside of attacks; it depends on this frame alone. */
function poseOf(player, frame) {
  const phase = ((player.x * player.facing * 2 * Math.PI) / 1.7);
  if (player.state === "walking") return stride(phase, 0.25, 0.12, 0.12, 0.2);
  if (player.state === "sprinting" || player.state === "dash") {
    return stride(phase * 0.8, 0.34, 0.2, 0.42, 0.3);
  }
  if (player.state === "stun") return stunnedPose(player, frame);
  if (player.state === "taunt") return tauntPose(frame);
  if (player.state in POSES) return POSES[player.state];
  if (player.state === "air_turnaround") return airPose(player.vy, frame, 0.35);
  if (player.state === "in_air" || !player.grounded) return airPose(player.vy, frame, 0);
  const breath = 0.014 * Math.sin(frame * 0.2);
  return {
    chest: [0.03, -0.07 + breath],
    head: [0.05, -0.34 + 1.5 * breath],
    hands: [[0.31, -0.07 + 2 * breath], [0.15, 0.02 + 2 * breath]],
  };
}

function stride(phase, reach, lift, lean, swing) {
  const foot = (angle) => [
    reach * Math.sin(angle) - 0.02,
    FEET - lift * Math.max(0, Math.cos(angle)),
  ];
  const hand = (angle) => [
    0.06 + lean * 0.4 + swing * Math.sin(angle),
    0.02 - 0.35 * swing * Math.cos(angle),
  ];
  const bounce = -0.03 * Math.abs(Math.cos(phase));
  return {
    hip: [-0.02, 0.12 + bounce],
    chest: [0.03 + 0.24 * lean, -0.07 + bounce],
    head: [0.05 + 0.5 * lean, -0.33 + 0.12 * lean + bounce],
    hands: [hand(phase + Math.PI), hand(phase)],
    feet: [foot(phase), foot(phase + Math.PI)],
    blade: lean > 0.3 ? -2.6 : -1,
    face: lean > 0.3 ? "fierce" : "calm",
  };
}

/** Thrown back; it tumbles when it flies fast. */
function stunnedPose(player, frame) {
  const shake = 0.04 * Math.sin(frame * 2.4);
  return {
    chest: [-0.03 + shake, -0.06],
    head: [-0.12 + shake, -0.3],
    hands: [[0.3, -0.26], [0.1, -0.34]],
    feet: [[0.3, FEET - 0.12], [0.08, FEET - 0.02]],
    turn: -0.5 - (Math.hypot(player.vx, player.vy) > 8 ? 0.4 * frame : 0),
    blade: -2.2,
    face: "hurt",
  };
}

/** Knees up while it rises, arms up while it falls. */
function airPose(vy, frame, turn) {
  const falling = clamp((vy + 5) / 11, 0, 1), flail = 0.05 * falling * Math.sin(frame * 0.9);
  const mix = (rising, sinking) => mixPoints(rising, sinking, falling);
  return {
    chest: mix([0.06, -0.08], [0, -0.05]),
    head: mix([0.11, -0.34], [0.02, -0.33]),
    hands: [mix([0.27, 0.06], [0.3, -0.34 + flail]), mix([-0.22, 0.1], [-0.26, -0.3 - flail])],
    feet: [mix([0.22, 0.26], [0.16, FEET - 0.02]), mix([-0.2, FEET], [-0.2, FEET - 0.16])],
    turn,
    blade: -1.2,
  };
}

function tauntPose(frame) {
  const wave = Math.sin(frame * 0.7), up = -0.07 * Math.abs(Math.sin(frame * 0.35));
  return {
    hip: [0, 0.13 + up],
    chest: [0, -0.08 + up],
    head: [0.02 + 0.03 * wave, -0.36 + up],
    hands: [[0.24 + 0.1 * wave, -0.56 + up], [-0.24, 0.06 + up]],
    feet: [[0.14, FEET + up], [-0.14, FEET + up]],
    turn: 0.06 * wave,
    blade: -1.5 + 0.3 * wave,
    face: "glad",
  };
}

function mixPoints(one, other, share) {
  return one.map((value, axis) => value + (other[axis] - value) * share);
}

// --- attacks: the hitting capsules and their poses

const KICKS = ["DLight", "SLight", "DSig", "SAir", "DAir", "Groundpound"];

/** The attack of `player` in this frame with the capsules of its power, or null. */
function strikeOf(player, powers) {
  if (player.state !== "attack") return null;
  let number = player.power, now = player.power_frame;
  for (; !powers[number].hits.length; number++) now = -Infinity; // what it is held back for
  const { hits } = powers[number];
  const next = hits.find(([from]) => now < from);
  let hit = hits.filter(([from]) => from <= now).pop(), part = "out", share = 1, glow = 1;
  if (!hit || (next && next[0] - now <= now - hit[1])) {
    [hit, part, share, glow] = [next, "wind-up", Math.min(1, player.move_frame / 6), 0];
  } else if (now >= hit[1]) {
    const since = now - hit[1] + 1;
    [part, share, glow] = ["recovery", Math.min(1, since / 10), Math.max(0, 1 - since / 4)];
  }
  const capsules = hit[2], edges = (axis, side) =>
    capsules.map((each) => each[axis] + (side * each[axis + 2]) / 2);
  const [left, top] = [0, 1].map((axis) => Math.min(...edges(axis, -1)));
  const [right, bottom] = [0, 1].map((axis) => Math.max(...edges(axis, 1)));
  const middle = [(left + right) / 2, (top + bottom) / 2], half = [right - middle[0], bottom - middle[1]];
  const [x, y] = middle, [wide] = half;
  const isRound = wide > 0.5 && Math.abs(x) < 0.35 * wide && Math.abs(y) < 0.6; // on both sides
  const aim = isRound ? [0, 0] : middle.map((each) => each / Math.hypot(x, y));
  return {
    part, share, glow, isRound, aim, capsules,
    tip: [middle[0] + aim[0] * half[0], middle[1] + aim[1] * half[1]],
    armed: player.weapon !== "unarmed",
    isKick: player.weapon === "unarmed" && KICKS.includes(player.move),
    bothFeet: player.move === "Groundpound",
    charging: powers[player.power].charge >= 0 && player.power_frame > powers[player.power].charge,
  };
}

/** The pose of an attack: drawn back, stretched out, and on its way back. */
function strikingPose(strike, frame) {
  if (strike.isRound) {
    const angle = strike.part === "wind-up" ? -1.5 : frame * 1.1;
    const hand = [0.4 * Math.cos(angle), -0.05 + 0.4 * Math.sin(angle)];
    return { hands: [hand, [-hand[0] * 0.6, -hand[1] * 0.6]], blade: angle, face: "fierce" };
  }
  if (strike.part === "wind-up") return windUpPose(strike, frame);
  const out = { ...NEUTRAL, ...(strike.isKick ? kickPose(strike) : hitPose(strike)) };
  if (strike.part === "out") return out;
  const mix = (name) => mixPoints(out[name], NEUTRAL[name], strike.share);
  const mixBoth = (name) =>
    [0, 1].map((i) => mixPoints(out[name][i], NEUTRAL[name][i], strike.share));
  return {
    hip: mix("hip"), chest: mix("chest"), head: mix("head"),
    hands: mixBoth("hands"), feet: mixBoth("feet"),
    turn: out.turn * (1 - strike.share),
    blade: out.blade + (NEUTRAL.blade - out.blade) * strike.share,
    face: out.face,
  };
}

function windUpPose(strike, frame) {
  const [ax, ay] = strike.aim, pull = 0.5 + 0.5 * strike.share;
  const shiver = strike.charging ? 0.02 * Math.sin(frame * 2.6) : 0;
  const hand = [0.05 - 0.32 * pull * ax + shiver, -0.08 - 0.26 * pull * ay - 0.1 * Math.abs(ax)];
  const foot = strike.isKick ? [-0.16 + 0.1 * ax, FEET - 0.1 * pull] : [0.2, FEET];
  return {
    hip: [-0.03 * ax, 0.14 + 0.04 * pull],
    chest: [0.02 - 0.1 * pull * ax, -0.04 - 0.05 * pull * ay],
    head: [0.04 - 0.1 * pull * ax, -0.3 - 0.05 * pull * ay],
    hands: [hand, [0.22, 0]],
    feet: [foot, [-0.2, FEET]],
    blade: Math.atan2(ay, ax) + (ay <= 0.5 ? -2.3 : 2.3) * pull,
    face: "fierce",
  };
}

function kickPose(strike) {
  const [ax, ay] = strike.aim, foot = towards([0, 0.13], strike.tip, 0.56);
  const trailing = [-0.14 * (ax || 1), ay < 0.5 ? FEET : 0.22];
  return {
    chest: [0.03 - 0.1 * ax, -0.06 - 0.06 * ay],
    head: [0.05 - 0.12 * ax, -0.34 - 0.05 * ay],
    hands: [[0.1 - 0.3 * ax, -0.2], [-0.2, 0.06]],
    feet: [foot, strike.bothFeet ? [foot[0] - 0.14, foot[1]] : trailing],
    face: "fierce",
  };
}

function hitPose(strike) {
  const [ax, ay] = strike.aim, tip = strike.tip;
  const chest = [0.03 + 0.14 * ax, -0.06 + 0.1 * ay];
  const hand = towards(chest, tip, strike.armed ? 0.42 : 0.5);
  return {
    hip: [0.06 * ax, 0.13],
    chest,
    head: [0.07 + 0.14 * ax, -0.33 + 0.1 * ay],
    hands: [hand, strike.armed ? towards(chest, tip, 0.2) : [-0.18, 0.06]],
    feet: ay > -0.5 ? [[0.24, FEET], [-0.26, FEET]] : [[0.1, FEET], [-0.12, FEET - 0.1]],
    blade: Math.atan2(tip[1] - hand[1], tip[0] - hand[0]),
    face: "fierce",
  };
}

/** The point on the way from `start` to `target`, at most `most` away. */
function towards(start, target, most) {
  const dx = target[0] - start[0], dy = target[1] - start[1];
  const share = Math.min(1, most / Math.max(Math.hypot(dx, dy), 1e-6));
  return [start[0] + dx * share, start[1] + dy * share];
}

/** The capsules that hit now, as one shape with a rim. It fades afterwards. */
function drawExtent(brush, { capsules, glow }, seat) {
  if (glow <= 0) return;
  for (const [colour, rim] of [[SEATS[seat], 0], [mixed(SEATS[seat], WHITE, 0.8), 0.05]]) {
    for (const [x, y, width, height] of capsules) {
      const w = width - 2 * rim, h = height - 2 * rim;
      brush.box(faded(colour, glow), x - w / 2, y - h / 2, w, h, Math.min(w, h) / 2);
    }
  }
}

// --- fighters

/** One fighter; `flash` from 0 to 1 turns it white, as at a hit. */
function drawFighter(brush, player, seat, frame, flash, powers) {
  const strike = strikeOf(player, powers);
  const pose = { ...NEUTRAL, ...(strike ? strikingPose(strike, frame) : poseOf(player, frame)) };
  const place = brush.at(player.x, player.y, { side: player.facing });
  if (strike) drawExtent(place, strike, seat);
  drawBody(place.at(0, 0, { turn: pose.turn }), player, seat, frame, flash, strike, pose);
  if (player.state === "dodge") brush.ring(faded(WHITE, 0.6), 0.04, player.x, player.y, 0.66);
  if (player.state === "stun") drawStars(brush.at(player.x, player.y - 0.62), frame);
  if (strike && strike.charging) {
    const pulse = 0.5 + 0.5 * Math.sin(frame * 0.9);
    const shine = faded(FLASH, 0.45 + 0.3 * pulse);
    place.glow(shine, -0.3 * strike.aim[0], -0.1, 0.55 + 0.15 * pulse);
    place.ring(faded(FLASH, 0.6), 0.03, 0, 0, 0.75 - 0.2 * pulse);
  }
}

/** First the dark outline of everything, then the colours over it. */
function drawBody(brush, player, seat, frame, flash, strike, pose) {
  const ghost = player.state === "dodge";
  const tint = (colour) => {
    const painted = flash ? mixed(colour, WHITE, flash) : colour;
    return ghost ? faded(mixed(painted, WHITE, 0.35), 0.5) : painted;
  };
  const main = tint(SEATS[seat]), dark = tint(DARK_SEATS[seat]), skin = tint(SKIN);
  const glove = tint(mixed(SEATS[seat], WHITE, 0.65)), ink = ghost ? tint(INK) : INK;
  const { hip, chest, head, hands, feet } = pose;
  const limb = (start, end, side) => [start, bentJoint(start, end, side), end];
  const arms = [0.07, -0.08].map((dx, i) => limb([chest[0] + dx, chest[1] - 0.03], hands[i], 1));
  const legs = [0.06, -0.06].map((dx, i) => limb([hip[0] + dx, hip[1] + 0.03], feet[i], -1));
  const drawHand = (spot) => {
    if (!ghost) brush.disc(ink, ...spot, 0.11);
    brush.disc(glove, ...spot, 0.085);
  };
  const drawLeg = (points, colour) => {
    const [x, y] = points[2];
    brush.line(colour, 0.125, ...points);
    brush.line(glove, 0.12, [x - 0.02, y], [x + 0.08, y]);
  };
  drawScarf(brush, player, head, frame, main, dark);
  if (!ghost) {
    for (const points of [...arms, ...legs]) brush.line(ink, 0.225, ...points);
    brush.line(ink, 0.4, chest, hip);
    brush.disc(ink, ...head, 0.275);
  }
  brush.line(dark, 0.125, ...arms[1]);
  drawHand(hands[1]);
  drawLeg(legs[1], dark);
  brush.line(main, 0.3, chest, hip);
  brush.line(dark, 0.07, [hip[0] - 0.13, hip[1]], [hip[0] + 0.13, hip[1]]);
  drawLeg(legs[0], main);
  brush.disc(skin, ...head, 0.225);
  if (!ghost) drawFace(brush, head, pose.face, main, ink);
  if (player.weapon !== "unarmed") {
    const [x, y] = hands[0];
    const stretched = strike && strike.part === "out" && !strike.isRound;
    const reach = stretched ? Math.hypot(strike.tip[0] - x, strike.tip[1] - y) : 0;
    drawWeapon(brush.at(x, y, { turn: pose.blade }), player.weapon, reach, ghost ? 0.5 : 1);
  }
  brush.line(main, 0.125, ...arms[0]);
  drawHand(hands[0]);
}

/** Elbow or knee between two ends, on `side` of the line; straight when they are far apart. */
function bentJoint(start, end, side) {
  const dx = end[0] - start[0], dy = end[1] - start[1];
  const apart = Math.max(Math.hypot(dx, dy), 1e-6);
  const out = Math.sqrt(Math.max(0.04 - (apart * apart) / 4, 0)) * side;
  const x = (start[0] + end[0]) / 2, y = (start[1] + end[1]) / 2;
  return [x - (dy / apart) * out, y + (dx / apart) * out];
}

/** Two tails at the neck that lag the motion. */
function drawScarf(brush, player, [x, y], frame, main, dark) {
  const drag = clamp((player.vx * player.facing) / 10, -0.7, 1);
  const sink = clamp(player.vy / 12, -0.8, 0.8);
  const fall = 0.24 - 0.2 * Math.abs(drag) - 0.3 * sink;
  for (const tail of [0, 1]) {
    const wave = Math.sin(frame * 0.5 + 1.3 * tail);
    const middle = [x - 0.32 - 0.08 * drag, y + 0.12 - 0.12 * sink + 0.03 * wave];
    const end = [x - 0.44 - 0.2 * drag - 0.04 * tail, y + fall + 0.05 * wave + 0.05 * tail];
    brush.line(tail ? dark : main, 0.075, [x - 0.17, y + 0.06], middle, end);
  }
}

function drawFace(brush, [x, y], face, band, ink) {
  brush.line(band, 0.1, [x - 0.19, y - 0.08], [x, y - 0.115], [x + 0.19, y - 0.08]);
  for (const eye of [x + 0.03, x + 0.15]) {
    if (face === "hurt") {
      brush.line(ink, 0.03, [eye - 0.035, y - 0.02], [eye + 0.035, y + 0.05]);
      brush.line(ink, 0.03, [eye - 0.035, y + 0.05], [eye + 0.035, y - 0.02]);
    } else if (face === "glad") {
      brush.line(ink, 0.03, [eye - 0.04, y + 0.03], [eye, y - 0.01], [eye + 0.04, y + 0.03]);
    } else {
      brush.line(ink, 0.05, [eye, y], [eye, y + 0.045]);
    }
  }
  if (face === "hurt") brush.disc(ink, x + 0.09, y + 0.13, 0.04);
  if (face === "glad") {
    brush.line(ink, 0.03, [x + 0.03, y + 0.1], [x + 0.09, y + 0.13], [x + 0.15, y + 0.1]);
  }
  if (face === "fierce") {
    brush.line(ink, 0.035, [x - 0.03, y - 0.07], [x + 0.07, y - 0.025]);
    brush.line(ink, 0.035, [x + 0.2, y - 0.06], [x + 0.12, y - 0.025]);
  }
}

/** Three stars that circle over a stunned head. */
function drawStars(brush, frame) {
  for (let number = 0; number < 3; number++) {
    const angle = frame * 0.35 + number * 2.094;
    const place = brush.at(0.3 * Math.cos(angle), 0.09 * Math.sin(angle));
    place.polygon(HAZARD, star(5, () => 0.1, 0.045));
  }
}

/** Corners of a star; `outer(ray)` is the length of a ray. */
function star(rays, outer, inner, turn = -Math.PI / 2) {
  return Array.from({ length: 2 * rays }, (_, corner) => {
    const away = corner % 2 ? inner : outer(corner / 2), angle = (Math.PI * corner) / rays + turn;
    return [away * Math.cos(angle), away * Math.sin(angle)];
  });
}

/** A small name over the head; of two fighters who stand close, one name is above the other. */
function drawName(brush, players, seat, name) {
  const player = players[seat], other = players[1 - seat];
  const close = Math.abs(player.x - other.x) < 1.9 && Math.abs(player.y - other.y) < 0.6;
  const x = player.x, y = player.y - 0.86;
  const up = close && seat === 1 && other.state !== "ko" ? 0.47 : 0.17, shown = shortened(name, 14);
  brush.polygon(SEATS[seat], [[x - 0.1, y], [x + 0.1, y], [x, y + 0.12]]);
  brush.text(INK, 0.27, x + 0.02, y - up + 0.02, shown);
  brush.text(mixed(SEATS[seat], WHITE, 0.6), 0.27, x, y - up, shown);
}

function shortened(text, most) {
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}

// --- effects that a single frame can't show

const EFFECT_FRAMES = { hit: 10, burst: 36, dust: 10 };
const TRAIL = 7;

/** Hits, knock-outs, dust and trails, found by comparing each frame with the one before. */
class Effects {
  constructor() {
    this.list = [];
    this.trails = [[], []];
    this.before = null;
  }

  /** A gap of more than a decision's length, or a step back, forgets what was seen. */
  see(frame) {
    const gap = this.before ? frame.frame - this.before.frame : 0;
    if (gap < 0 || gap > 30) {
      this.list = [];
      this.trails = [[], []];
      this.before = null;
    }
    this.list = this.list.filter((each) => frame.frame - each.frame < EFFECT_FRAMES[each.kind]);
    frame.players.forEach((player, seat) => {
      this.follow(seat, player);
      if (this.before) this.compare(frame, seat, this.before.players[seat], player);
    });
    this.before = frame;
  }

  follow(seat, player) {
    const trail = this.trails[seat];
    const fast = Math.hypot(player.vx, player.vy) > 11 || player.state === "dash";
    if (fast && player.state !== "ko") trail.push([player.x, player.y]);
    else trail.shift();
    if (trail.length > TRAIL) trail.shift();
  }

  compare(frame, seat, old, now) {
    const add = (kind, x, y, more) =>
      this.list.push({ kind, frame: frame.frame, seat, x, y, ...more });
    if (now.state === "ko" && old.state !== "ko") {
      const [wide, tall] = frame.blast;
      const x = clamp(now.x, -wide, wide), y = clamp(now.y, -tall, tall);
      add("burst", x, y, { size: 2, inward: Math.atan2(-y, -x) });
    } else if (now.damage > old.damage) {
      const damage = now.damage - old.damage, other = frame.players[1 - seat];
      const [x, y] = towards([now.x, now.y], [other.x, other.y], 0.3);
      add("hit", x, y, { size: Math.min(0.35 + damage / 20, 1.6), damage });
    } else if (old.grounded !== now.grounded && (now.vy < -4 || old.vy > 4)) {
      add("dust", now.x, now.y + 0.45, { size: 0 });
    }
  }

  /** Frames since the newest effect of a kind on a seat, or Infinity. */
  age(kind, seat, frame) {
    const ages = this.list.filter((each) => each.kind === kind && each.seat === seat);
    return Math.min(...ages.map((each) => frame - each.frame));
  }

  /** How far the camera trembles. */
  shake(frame) {
    const strong = this.list.filter((each) => each.size > 0.8);
    const left = (each) => each.size * Math.max(0, 1 - (frame - each.frame) / 7);
    const force = strong.reduce((sum, each) => sum + left(each), 0);
    const size = 0.07 * Math.min(force, 2);
    return [size * Math.sin(frame * 2.9), size * Math.cos(frame * 3.7)];
  }

  /** Trails and dust, under the fighters. */
  drawUnder(brush, frame) {
    this.trails.forEach((trail, seat) => {
      for (let number = 1; number < trail.length; number++) {
        const share = (0.5 * number) / TRAIL;
        brush.line(faded(SEATS[seat], share), 0.12 + share, trail[number - 1], trail[number]);
      }
    });
    for (const each of this.list.filter((one) => one.kind === "dust")) {
      drawDust(brush.at(each.x, each.y), (frame - each.frame) / EFFECT_FRAMES.dust);
    }
  }

  /** Sparks and bursts, over the fighters. */
  drawOver(brush, frame) {
    const draw = { hit: drawSpark, burst: drawBurst };
    for (const each of this.list.filter((one) => one.kind in draw)) {
      const age = (frame - each.frame) / EFFECT_FRAMES[each.kind];
      draw[each.kind](brush.at(each.x, each.y), each, age);
    }
  }
}

function drawDust(brush, age) {
  const colour = faded("#cfd3ea", 0.45 * (1 - age));
  for (const x of [-2, -1, 1, 2]) {
    const away = 0.2 * Math.sign(x) + 0.35 * x * age;
    brush.disc(colour, away, -0.08 * Math.abs(x) * age, 0.1 + 0.1 * age);
  }
}

/** A star that bursts open, and the damage as a figure that rises from it. */
function drawSpark(brush, hit, age) {
  const size = hit.size, left = 1 - age;
  brush.glow(faded(FLASH, 0.8 * left), 0, 0, 1.1 * size);
  if (age < 0.6) {
    const length = size * (0.45 + 0.6 * age);
    const corners = star(8, (ray) => length * (ray % 2 ? 0.72 : 1), length * 0.3, hit.frame);
    brush.polygon(faded(HAZARD, 0.9 * left), corners);
    brush.polygon(faded(WHITE, left), corners.map(([x, y]) => [0.6 * x, 0.6 * y]));
  }
  brush.ring(faded(WHITE, 0.7 * left), 0.05 + 0.06 * left, 0, 0, size * (0.3 + 0.9 * age));
  const figure = hit.damage.toFixed(0), height = 0.42 + 0.1 * size;
  brush.text(faded(INK, left), height, 0.03, -0.77 - 0.5 * age, figure);
  brush.text(faded(FLASH, left), height, 0, -0.8 - 0.5 * age, figure);
}

/** A knock-out: a beam from the rim into the stage, rings, and two letters. */
function drawBurst(brush, burst, age) {
  const left = 1 - age, colour = SEATS[burst.seat], beam = brush.at(0, 0, { turn: burst.inward });
  const long = 9 * Math.min(1, 3.5 * age + 0.2), wide = 1.3 * left;
  const ray = (length, start, end) => [[-1, -start], [length, -end], [length, end], [-1, start]];
  beam.polygon(faded(colour, 0.55 * left), ray(long, wide, 0.4 * wide));
  beam.polygon(faded(WHITE, 0.8 * left), ray(0.8 * long, 0.5 * wide, 0.1 * wide));
  brush.glow(faded(FLASH, 0.9 * left), 0, 0, 3.4);
  for (const ring of [0.5, 1, 1.5]) {
    brush.ring(faded(WHITE, 0.6 * left), 0.14 * left, 0, 0, (0.4 + 2.6 * age) * ring);
  }
  for (let number = 0; number < 10; number++) {
    const angle = number * 0.628 + burst.frame, away = 0.6 + 3.4 * age * (0.6 + 0.4 * (number % 3));
    brush.disc(faded(colour, left), away * Math.cos(angle), away * Math.sin(angle), 0.16 * left);
  }
  const x = 2.2 * Math.cos(burst.inward), y = 2.2 * Math.sin(burst.inward);
  brush.text(faded(INK, left), 1.35, x + 0.06, y + 0.06, "KO");
  brush.text(faded(WHITE, left), 1.35, x, y, "KO");
}

// --- panels over the picture, in pixels

const CARD = [330, 104], EDGE = 20, KEY = 34, KEY_STEP = 40;
const KEY_PLACES = { // columns and rows of the little keyboard
  W: [1, 0], G: [3.4, 0], H: [4.4, 0], A: [0, 1], S: [1, 1], D: [2, 1], J: [3.4, 1], K: [4.4, 1],
  L: [5.4, 1], space: [0, 2],
};

/** A seat's card with its name, damage, stocks and weapon. */
function drawCard(card, seat, name, player, stocks) {
  const at = (x) => (seat === 0 ? x : CARD[0] - x), align = seat === 0 ? -1 : 1;
  card.box(PANEL, 0, 0, ...CARD, 16);
  card.box(SEATS[seat], seat === 0 ? 0 : CARD[0] - 8, 0, 8, CARD[1], 4);
  card.text(SEATS[seat], 25, at(24), 26, shortened(name, 22), align);
  card.text(heat(player.damage), 52, at(24), 70, player.damage.toFixed(0), align);
  for (let number = 0; number < Math.max(stocks, player.stocks); number++) {
    const x = at(156 + 29 * number); // after a damage of three figures
    if (number < player.stocks) {
      card.disc(SEATS[seat], x, 72, 11);
      card.disc("#ffffff90", x - 3, 68, 3.5);
    } else {
      card.ring("#ffffff40", 2.5, x, 72, 10);
    }
  }
  const icon = card.at(at(275), 66, { size: 44 }).at(-0.2, 0.12, { turn: -0.6, size: 0.9 });
  drawWeapon(icon, player.weapon);
}

/** The keys, those that are down in the seat's colour. */
function drawKeys(brush, seat, down) {
  for (const [key, [column, row]] of Object.entries(KEY_PLACES)) {
    const x = column * KEY_STEP, y = row * KEY_STEP;
    const width = key === "space" ? 3 * KEY_STEP - 6 : KEY;
    const pressed = down.includes(key);
    brush.box("#0c0e2090", x, y, width, KEY, 7);
    if (pressed) brush.box(SEATS[seat], x, y, width, KEY, 7);
    brush.text(pressed ? INK : "#ffffff60", 15, x + width / 2, y + KEY / 2, key);
  }
}

function drawClock(brush, middle, framesLeft, perSecond, stage) {
  const seconds = Math.ceil(Math.max(0, framesLeft) / perSecond);
  const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  brush.box(PANEL, middle - 85, EDGE, 170, 74, 16);
  brush.text(DIM, 15, middle, EDGE + 58, stage);
  brush.text(seconds <= 10 ? "#ff6b5e" : WHITE, 38, middle, EDGE + 27, time);
}

/** How the match ended, across the middle of the picture. */
function drawVerdict(brush, width, height, { text, winner }) {
  const colour = winner === null ? DIM : SEATS[winner];
  brush.box("#0c0e20d8", 0, height / 2 - 70, width, 140);
  brush.box(colour, 0, height / 2 - 70, width, 5);
  brush.box(colour, 0, height / 2 + 65, width, 5);
  brush.text(INK, 62, width / 2 + 3, height / 2 + 3, text);
  brush.text(winner === null ? WHITE : colour, 62, width / 2, height / 2, text);
}

/** The words of a frame over its match. */
function drawWords(brush, width, height, { verdict, caption, title }) {
  if (caption) {
    brush.box(PANEL, width / 2 - 350, height - 62, 700, 44, 14);
    brush.text(WHITE, 24, width / 2, height - 40, shortened(caption, 54));
  }
  if (verdict) drawVerdict(brush, width, height, verdict);
  if (!title) return;
  brush.box("#0c0e20e4", 0, 0, width, height);
  title.forEach((line, row) => {
    const y = height / 2 + 64 * row - 32 * title.length;
    if (row) brush.text(WHITE, 40, width / 2, y + 30, shortened(line, 56));
    else brush.text("#ffc83d", 72, width / 2, y, shortened(line, 30));
  });
}

// --- scenes

/** A match of the fighting game. */
class FightScene {
  constructor(still, names, width) {
    this.still = still;
    this.width = width;
    this.names = names.map((name, seat) => name || `seat ${seat}`);
    this.camera = new Camera(width, still.blast);
    this.effects = new Effects();
    this.panelSize = Math.min(1, width / 1280);
    this.hidesKeys = false;
  }

  see(frame) {
    this.frame = this.unpacked(frame);
    this.effects.see(this.frame);
    const shown = (player, seat) =>
      player.state !== "ko" || this.effects.age("burst", seat, this.frame.frame) < 26;
    this.camera.follow(this.frame.players.filter(shown).map((player) => [player.x, player.y]));
  }

  /** The frame with its rows as objects. */
  unpacked(frame) {
    const { columns, states, blast } = this.still;
    const object = (names, row) => Object.fromEntries(names.map((name, at) => [name, row[at]]));
    const player = (row) => {
      const fields = object(columns.player, row);
      const keys = columns.keys.filter((_, bit) => (fields.keys >> bit) & 1);
      return { ...fields, keys, state: states[fields.state] };
    };
    const weapons = (frame.weapons || []).map((row) => object(columns.weapon, row));
    return { ...frame, blast, weapons, players: frame.players.map(player) };
  }

  shapes() {
    const shapes = [["sky", SKY]];
    this.drawWorld(shapes);
    this.drawPanels(new Brush(shapes).at(0, 0, { size: this.panelSize }));
    return shapes;
  }

  drawWorld(shapes) {
    const { still, frame, effects } = this, now = frame.frame, shake = effects.shake(now);
    const at = (depth) => this.camera.brush(shapes, depth, shake), world = at(1);
    drawMoon(at(0.12));
    drawSkyline(at(0.3), { seed: 3, colour: "#2a2250", top: 1.6, step: 2.2, windows: false });
    drawSkyline(at(0.55), { seed: 11, colour: "#191634", top: 3.4, step: 2.6, windows: true });
    drawGrounds(world, still.solids, still.blast);
    if (still.platform[0] > 0) drawPlatform(world.at(...frame.platform), ...still.platform);
    for (const weapon of frame.weapons) drawLyingWeapon(world, weapon, now);
    effects.drawUnder(world, now);
    const isAttack = (seat) => (frame.players[seat].state === "attack" ? 1 : 0);
    for (const seat of [0, 1].sort((one, other) => isAttack(one) - isAttack(other))) {
      const player = frame.players[seat];
      if (player.state === "ko") continue;
      const flash = Math.max(0, 1 - effects.age("hit", seat, now) / 4);
      drawFighter(world, player, seat, now, flash, still.powers);
      drawName(world, frame.players, seat, this.names[seat]);
    }
    effects.drawOver(world, now);
  }

  drawPanels(brush) {
    const { still, frame } = this;
    const width = this.width / this.panelSize, height = HEIGHT / this.panelSize;
    const keysWidth = 6.4 * KEY_STEP - 6, keysTop = height - EDGE - 3 * KEY_STEP + 6;
    frame.players.forEach((player, seat) => {
      const left = (wide) => (seat === 0 ? EDGE : width - EDGE - wide);
      drawCard(brush.at(left(CARD[0]), EDGE), seat, this.names[seat], player, still.stocks);
      if (!this.hidesKeys) drawKeys(brush.at(left(keysWidth), keysTop), seat, player.keys);
    });
    const framesLeft = still.max_frames - frame.frame;
    drawClock(brush, width / 2, framesLeft, still.frames_per_second, still.stage);
    drawWords(brush, width, height, frame);
  }
}

/** A match of a game without a drawing: its frames as lines of text, [label, text, seat, mono]. */
class LinesScene {
  constructor(still, names, width) {
    this.names = names;
    this.width = width;
  }

  see(frame) {
    this.frame = frame;
  }

  shapes() {
    const shapes = [["sky", SKY]], brush = new Brush(shapes);
    this.names.forEach((name, seat) => {
      const x = seat === 0 ? 40 : this.width - 40;
      brush.text(SEATS[seat], 34, x, 50, name || `seat ${seat}`, seat === 0 ? -1 : 1);
    });
    brush.box(PANEL, 30, 96, this.width - 60, HEIGHT - 126, 18);
    this.frame.lines.slice(0, 16).forEach(([label, text, seat, mono], row) => {
      const y = 128 + row * 35.1, shown = shortened(text, 65);
      brush.text(seat === null ? DIM : SEATS[seat], 26, 56, y, label.slice(0, 18), -1);
      if (!mono) {
        brush.text(WHITE, 26, 330, y, shown, -1);
        return;
      }
      [...shown].forEach((mark, at) => {
        if (mark !== " ") brush.text(WHITE, 26, 338 + at * 14.56, y, mark);
      });
    });
    drawWords(brush, this.width, HEIGHT, this.frame);
    return shapes;
  }
}

/** A scene for a match: `still` is its constant part, `names` are the seats' names. */
function sceneFor(still, names, width) {
  return still.solids ? new FightScene(still, names, width) : new LinesScene(still, names, width);
}
