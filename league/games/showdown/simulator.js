// Plays many battles of Pokémon Showdown in one process: a line of JSON in, a line of JSON out.
//
//   node simulator.js FOLDER    FOLDER/node_modules holds the package pokemon-showdown
//
// A line in is a list of commands. A line out is the list of their answers:
//   ["begin", row, format, seed, [team, team]]   packed teams; null: the format draws them
//   ["choose", row, [choice, choice]]            of players p1 and p2; null: no choice to make
//   ["log", row]                                 the battle so far, as in Showdown's replays
//   ["last", row]                                the whole of the row's battle before
//   ["pack", format, text]                       a team in PokePaste: packs it, and lists its
//                                                problems by the format's rules
// The answers to the first two have the lines sent to each player, which players must choose now,
// and, after the end, the winner's seat (-1: a draw).
"use strict";

const path = require("node:path");
const readline = require("node:readline");

const root = path.join(process.argv[2], "node_modules", "pokemon-showdown", "dist", "sim");
const {Battle, extractChannelMessages} = require(path.join(root, "battle"));
const {Teams} = require(path.join(root, "teams"));
const {TeamValidator} = require(path.join(root, "team-validator"));
const NAMES = ["p1", "p2"];
const battles = new Map();

function begin(row, format, seed, teams) {
  seed = BigInt(seed);
  const sent = [[], []];
  const send = (kind, data) => {
    if (kind === "update") {
      const channels = extractChannelMessages(data.join("\n"), [1, 2]);
      sent[0].push(...channels[1]);
      sent[1].push(...channels[2]);
    } else if (kind === "sideupdate") {
      const [side, line] = data.split("\n", 2);
      sent[NAMES.indexOf(side)].push(line);
    }
  };
  const words = (n) => Array.from({length: 4}, (_, i) => (seed >> (16n * BigInt(i))) & 0xffffn)
    .map((word) => (Number(word) ^ (n * 0x9e37)) & 0xffff).join(",");
  const battle = new Battle({formatid: format, seed: words(0), send});
  battles.set(row, {battle, sent, last: battles.has(row) ? log(row) : ""});
  NAMES.forEach((name, seat) => {
    battle.setPlayer(name, {name, team: teams[seat] ?? undefined, seed: words(seat + 1)});
  });
  return answer(row);
}

function choose(row, choices) {
  const {battle} = battles.get(row);
  choices.forEach((choice, seat) => {
    if (choice !== null) battle.choose(NAMES[seat], choice);
  });
  return answer(row);
}

function answer(row) {
  const {battle, sent} = battles.get(row);
  battle.sendUpdates();
  const lines = sent.map((own) => own.splice(0));
  const must = battle.sides.map((side) => !battle.ended && !side.isChoiceDone());
  return {lines, must, winner: battle.ended ? NAMES.indexOf(battle.winner) : null};
}

function log(row) {
  const {battle} = battles.get(row);
  return extractChannelMessages(battle.log.join("\n"), [0])[0].join("\n");
}

function pack(format, text) {
  const team = Teams.import(text);
  const problems = team ? TeamValidator.get(format).validateTeam(team) : ["it has no Pokémon"];
  return {packed: team ? Teams.pack(team) : "", problems: problems ?? []};
}

const last = (row) => battles.get(row).last;
const verbs = {begin, choose, log, last, pack};
readline.createInterface({input: process.stdin}).on("line", (line) => {
  const answers = JSON.parse(line).map(([verb, ...rest]) => {
    try {
      return verbs[verb](...rest);
    } catch (error) {
      return {error: String(error.stack ?? error)};
    }
  });
  process.stdout.write(JSON.stringify(answers) + "\n");
});
process.stdout.write("ready\n");
