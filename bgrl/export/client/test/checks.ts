/** What has to hold wherever the client runs; used by the Node tests and inside the browser. */
import {
  Bot, Bundle, CELLS, Evaluator, FlatNet, OrtModule, RankedPlay, Storage, boardAfter, chooseIndex, equity, legalPlays, rankPlays, swapped,
  values,
} from "../src/index.js";

export interface Golden {
  cases: { board: number[][]; inputs: number[]; probabilities: number[]; equity: number }[];
  decisions: {
    board: number[][];
    dice: [number, number];
    plays: { board: number[][]; equity: number }[];
    chosen: { level: string; chance: number; board: number[][] }[];
  }[];
}

/** What bgrl computed for many positions; arrays as base64 of their little-endian bytes. */
export interface Reference {
  boards: string;
  probabilities: string;
  /** A roll for each of the first positions, and the positions it leads to, in any order; after a dance the sides swapped. */
  rolls: { dice: [number, number]; finals: string }[];
  /** Decisions of levels: position, dice, random number, and the position chosen. */
  choices: { level: string; at: number; dice: [number, number]; chance: number; board: string }[];
  /** Values at more plies of some positions for some levels' nets. */
  values: { level: string; at: number; plies: number; probabilities: string }[];
}

export interface Found {
  [what: string]: number;
}

const STATIC = { plies: 0, filters: { root: [], reply: { accept: 1, extra: 0, threshold: 0 } } };
const CLOSE = 1e-5;

export function cellsOf(board: number[][]): Int8Array {
  return Int8Array.from(board.flat());
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function key(board: Int8Array): string {
  return board.join();
}

async function largest(net: Evaluator, cells: Int8Array, expected: Float32Array): Promise<number> {
  const out = await net.evaluate(cells, expected.length / 5);
  return out.reduce((most, p, i) => Math.max(most, Number.isNaN(p) ? Infinity : Math.abs(p - expected[i])), 0);
}

/** Whether a bot with this ranking plays the board `wanted`, or one that differs by less than rounding. */
function chooses(bot: Bot, plays: RankedPlay[], chance: number, wanted: string): boolean {
  const chosen = plays[chooseIndex(bot.level.misses, plays.map((play) => play.equity), chance)];
  const equityOf = plays.find((play) => key(play.board) === wanted)?.equity ?? Infinity;
  return Math.abs(chosen.equity - equityOf) <= CLOSE;
}

/** Golden vectors of every net in the bundle: what differs, and by how much. */
export async function checkGolden(bundle: Bundle, ort: OrtModule): Promise<Found> {
  const found: Found = { cases: 0, decisions: 0, choices: 0, inputsDiffer: 0, wrongPlays: 0, wrongOrder: 0,
    wrongChoices: 0, flat: 0, onnx: 0, equity: 0 };
  for (const net of new Set(bundle.levels.map((level) => level.net))) {
    const golden = JSON.parse(new TextDecoder().decode(await bundle.file(`${net}.golden.json`))) as Golden;
    const flat = await bundle.flatNet(net);
    const onnx = await bundle.net(net, ort);
    const cells = Int8Array.from(golden.cases.flatMap((one) => one.board.flat()));
    const expected = Float32Array.from(golden.cases.flatMap((one) => one.probabilities));
    found.flat = Math.max(found.flat, await largest(flat, cells, expected));
    found.onnx = Math.max(found.onnx, await largest(onnx, cells, expected));
    golden.cases.forEach((one, i) => {
      found.cases++;
      const inputs = flat.encode(cells, i * CELLS);
      if (one.inputs.some((x, k) => x !== inputs[k])) found.inputsDiffer++;
      found.equity = Math.max(found.equity, Math.abs(one.equity - equity(expected, 5 * i, flat.points)));
    });
    for (const decision of golden.decisions) {
      found.decisions++;
      const board = cellsOf(decision.board);
      const ranked = await rankPlays(onnx, board, ...decision.dice, STATIC);
      const equities = new Map(ranked.map((play) => [key(play.board), play.equity]));
      if (ranked.length !== decision.plays.length) found.wrongPlays++;
      decision.plays.forEach((play, k) => {
        const ours = equities.get(key(cellsOf(play.board)));
        if (ours === undefined || Math.abs(ours - play.equity) > CLOSE) found.wrongPlays++;
        if (Math.abs((ranked[k]?.equity ?? Infinity) - play.equity) > CLOSE) found.wrongOrder++;
      });
      const rankings = new Map<string, RankedPlay[]>();
      for (const choice of decision.chosen) {
        found.choices++;
        const bot = new Bot(bundle.level(choice.level), onnx);
        const plays = rankings.get(choice.level) ?? (await bot.rankPlays(board, ...decision.dice));
        rankings.set(choice.level, plays);
        if (!chooses(bot, plays, choice.chance, key(cellsOf(choice.board)))) found.wrongChoices++;
      }
    }
  }
  return found;
}

/** Every storage of every net: the flat file and the ONNX file hold the same net. */
export async function checkStorages(bundle: Bundle, ort: OrtModule): Promise<Found> {
  const found: Found = { nets: 0, difference: 0 };
  const start = Int8Array.from([...Array(26).keys()].map((slot) => ({ 24: 2, 13: 5, 8: 3, 6: 5 })[slot] ?? 0));
  const cells = Int8Array.from([...start, ...start]);
  for (const net of new Set(bundle.levels.map((level) => level.net))) {
    for (const storage of ["float32", "float16", "int8"] as Storage[]) {
      const flat: FlatNet = await bundle.flatNet(net, storage);
      const onnx = await bundle.net(net, ort, storage);
      found.difference = Math.max(found.difference, await largest(onnx, cells, await flat.evaluate(cells, 1)));
      found.nets++;
    }
  }
  return found;
}

/** Everything in the reference: what differs, and by how much. */
export async function checkReference(bundle: Bundle, ort: OrtModule, reference: Reference): Promise<Found> {
  const found: Found = { positions: 0, flat: 0, onnx: 0, rolls: 0, wrongRolls: 0, choices: 0, wrongChoices: 0,
    values: 0, value: 0 };
  const cells = new Int8Array(fromBase64(reference.boards).buffer);
  const at = (i: number) => cells.slice(i * CELLS, (i + 1) * CELLS);
  const expected = new Float32Array(fromBase64(reference.probabilities).buffer);
  const [first] = bundle.levels;
  found.positions = expected.length / 5;
  found.flat = await largest(await bundle.flatNet(first.net), cells, expected);
  found.onnx = await largest(await bundle.net(first.net, ort), cells, expected);
  reference.rolls.forEach(({ dice, finals }, i) => {
    found.rolls++;
    const wanted = new Int8Array(fromBase64(finals).buffer);
    const keys = new Set<string>();
    for (let k = 0; k < wanted.length; k += CELLS) keys.add(key(wanted.slice(k, k + CELLS)));
    const plays = legalPlays(at(i), ...dice);
    const ours = plays.length > 0 ? plays.map((moves) => key(boardAfter(at(i), moves))) : [key(swapped(at(i)))];
    if (ours.length !== keys.size || ours.some((one) => !keys.has(one))) found.wrongRolls++;
  });
  const bots = new Map<string, Bot>();
  for (const level of bundle.levels) bots.set(level.name, await Bot.load(bundle, level.name, ort));
  for (const choice of reference.choices) {
    const bot = bots.get(choice.level) as Bot;
    const board = at(choice.at);
    const wanted = key(new Int8Array(fromBase64(choice.board).buffer));
    found.choices++;
    const plays = await bot.rankPlays(board, ...choice.dice);
    if (!chooses(bot, plays, choice.chance, wanted)) found.wrongChoices++;
  }
  for (const { level, at: i, plies, probabilities } of reference.values) {
    const bot = bots.get(level) as Bot;
    const wanted = new Float32Array(fromBase64(probabilities).buffer);
    const ours = await values(bot.net, at(i), 1, plies, bot.level.filters.reply);
    found.values++;
    found.value = wanted.reduce((most, p, k) => Math.max(most, Math.abs(p - ours[k])), found.value);
  }
  return found;
}
