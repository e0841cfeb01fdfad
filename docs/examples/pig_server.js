// Serves Pig, a dice game, to the league. Put games.proto beside this file, then
//   npm install @grpc/grpc-js @grpc/proto-loader && node pig_server.js PORT
// In a turn, a player rolls a die as often as it likes, and then holds to bank the sum. A 1 ends the
// turn, and the sum is lost. Who has banked 30 first has won.
const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const PROTO = path.join(process.argv[3] || __dirname, 'games.proto');
const { GameService } = grpc.loadPackageDefinition(
  loader.loadSync(PROTO, { keepCase: true, defaults: true })).league.v1;
const TARGET = 30, HOLD = 1, OBSERVATION = 4, ACTIONS = 2;

class Pig {
  constructor(seed) {
    this.luck = seed;
    this.banked = [0, 0];
    this.sum = 0;
    this.turn = seed % 2;
    this.outcome = 0;
    this.rewards = [0, 0];
  }

  die() { // mulberry32: the same numbers in every language
    this.luck = (this.luck + 0x6D2B79F5) >>> 0;
    let x = Math.imul(this.luck ^ this.luck >>> 15, 1 | this.luck) >>> 0;
    x = (x ^ (x + Math.imul(x ^ x >>> 7, 61 | x))) >>> 0;
    return 1 + ((x ^ x >>> 14) >>> 0) % 6;
  }

  step(actions) {
    const me = this.turn;
    this.rewards = [0, 0];
    if (actions[me] === HOLD) {
      this.banked[me] += this.sum;
      this.rewards[me] = this.sum / TARGET;
      if (this.banked[me] >= TARGET) this.outcome = 1 + me; // OUTCOME_SEAT_0_WON, _1_WON
      this.sum = 0;
      this.turn = 1 - me;
    } else {
      const rolled = this.die();
      this.sum = rolled === 1 ? 0 : this.sum + rolled;
      if (rolled === 1) this.turn = 1 - me;
    }
  }

  see(seat) {
    const numbers = [this.banked[seat], this.banked[1 - seat], this.sum];
    return [...numbers.map((n) => Math.min(1, n / TARGET)), this.turn === seat ? 1 : 0];
  }

  legal(seat) {
    return this.turn === seat ? [1, this.sum > 0 ? 1 : 0] : [0, 0];
  }
}

const bytes = (numbers) => Buffer.from(numbers.buffer);

function response(matches) {
  const seen = new Float32Array(matches.length * 2 * OBSERVATION);
  const legal = new Uint8Array(matches.length * 2 * ACTIONS);
  const rewards = new Float32Array(matches.length * 2);
  const outcomes = new Uint8Array(matches.length);
  matches.forEach((match, n) => {
    for (const seat of [0, 1]) {
      seen.set(match.see(seat), (2 * n + seat) * OBSERVATION);
      legal.set(match.legal(seat), (2 * n + seat) * ACTIONS);
    }
    rewards.set(match.rewards, 2 * n);
    outcomes[n] = match.outcome;
  });
  return { observations: bytes(seen), legal: bytes(legal), rewards: bytes(rewards),
    outcomes: bytes(outcomes) };
}

function describeGame(call, reply) {
  reply(null, { contract: 1, name: 'pig', version: '1', seats: 2, observation_size: OBSERVATION,
    action_kind: 2, action_names: ['roll', 'hold'], reward_terms: ['banked'], max_frames: 500,
    has_text: true });
}

function play(stream) {
  const matches = new Map(); // by row
  stream.on('data', ({ begin, step, text }) => {
    if (text) {
      const match = matches.get(text.row);
      stream.write({ text: `[${match.banked.join(', ')}], ${match.sum} in this turn` });
      return;
    }
    const { rows } = begin || step;
    rows.forEach((row, n) => {
      if (begin) matches.set(row, new Pig(begin.seeds[n]));
      else matches.get(row).step(step.actions.slice(2 * n, 2 * n + 2));
    });
    stream.write(response(rows.map((row) => matches.get(row))));
  });
  stream.on('end', () => stream.end());
  stream.on('error', () => {}); // the league has ended the stream
}

const server = new grpc.Server();
server.addService(GameService.service, { DescribeGame: describeGame, Play: play });
server.bindAsync(`127.0.0.1:${process.argv[2]}`, grpc.ServerCredentials.createInsecure(),
  (error, port) => {
    if (error) throw error;
    console.log(`ready ${port}`);
  });
