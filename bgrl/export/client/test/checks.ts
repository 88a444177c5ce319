/** What has to hold wherever the client runs; used by the Node tests and inside the browser. */
import {
  Bearoff, Bot, Bundle, CELLS, Evaluator, FlatNet, OrtModule, RankedPlay, Storage, boardAfter, chooseIndex, equity, homeIndex,
  legalPlays, rankPlays, startBoard, swapped, values,
} from "../src/index.js";

export interface Golden {
  cases: { board: number[][]; inputs: number[]; probabilities: number[]; equity: number }[];
  decisions: {
    board: number[][];
    dice: [number, number];
    plays: { board: number[][]; equity: number }[];
    chosen: { level: string; style: string | null; chance: number; board: number[][] }[];
  }[];
}

export interface BearoffGolden {
  cases: {
    board: number[][];
    homes: number[];
    all_off: number[][];
    first_off: (number[] | null)[];
    probabilities: number[];
  }[];
}

/** What bgrl computed for many positions; arrays as base64 of their little-endian bytes. */
export interface Reference {
  boards: string;
  /** By net, of all positions. */
  probabilities: Record<string, string>;
  /**
   * A roll for each of the first positions, and the positions it leads to, in any order; after a dance
   * the sides swapped. Which of them is the best by the first net; null if another is as good.
   */
  rolls: { dice: [number, number]; finals: string; best: number | null }[];
  /** Decisions of levels, in their own style (null) or another: position, dice, random number, and the position chosen. */
  choices: { level: string; style: string | null; at: number; dice: [number, number]; chance: number; board: string }[];
  /** Values at more plies of some positions for some levels. */
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
  const chosen = plays[chooseIndex(bot.level, plays, chance)];
  const equityOf = plays.find((play) => key(play.board) === wanted)?.equity ?? Infinity;
  return Math.abs(chosen.equity - equityOf) <= CLOSE;
}

/** Golden vectors of every net in the bundle: what differs, and by how much. */
export async function checkGolden(bundle: Bundle, ort: OrtModule): Promise<Found> {
  const found: Found = { cases: 0, decisions: 0, choices: 0, inputsDiffer: 0, wrongPlays: 0, wrongOrder: 0,
    wrongChoices: 0, flat: 0, onnx: 0, equity: 0 };
  const [byRuntime, plain] = [loader(bundle, ort), loader(bundle)];
  for (const net of Object.keys(bundle.record.nets)) {
    const golden = JSON.parse(new TextDecoder().decode(await bundle.file(`${net}.golden.json`))) as Golden;
    const flat = await bundle.flatNet(net);
    const onnx = await bundle.net(net, { ort });
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
        // See checkReference.
        const load = bundle.level(choice.level).plies > 0 ? plain : byRuntime;
        const bot = await load(choice.level, choice.style);
        const plays = rankings.get(choice.level) ?? (await bot.rankPlays(board, ...decision.dice));
        rankings.set(choice.level, plays);
        if (!chooses(bot, plays, choice.chance, key(cellsOf(choice.board)))) found.wrongChoices++;
      }
    }
  }
  return found;
}

type Loader = (level: string, style: string | null) => Promise<Bot>;

/** Bots by level and style, each level loaded once. */
function loader(bundle: Bundle, ort?: OrtModule): Loader {
  const bots = new Map<string, Bot>();
  return async (level, style) => {
    const bot = bots.get(level) ?? (await Bot.load(bundle, level, { ort }));
    bots.set(level, bot);
    return style === null ? bot : bot.withStyle(bundle.style(style));
  };
}

/** Golden vectors of every bear-off database in the bundle. */
export async function checkBearoff(bundle: Bundle): Promise<Found> {
  const found: Found = { cases: 0, wrongHomes: 0, chance: 0, probability: 0 };
  for (const name of new Set(Object.values(bundle.record.nets).map((net) => net.bearoff))) {
    const database: Bearoff = await bundle.bearoff(name);
    const golden = JSON.parse(
      new TextDecoder().decode(await bundle.file(name.replace(/bgoff$/, "golden.json"))),
    ) as BearoffGolden;
    for (const one of golden.cases) {
      found.cases++;
      const cells = cellsOf(one.board);
      for (const side of [0, 1] as const) {
        const home = homeIndex(cells, 0, side);
        if (home !== one.homes[side]) found.wrongHomes++;
        for (let t = 0; t < 32; t++) {
          const all = Math.abs(database.allOff(home, t) - (one.all_off[side][t] ?? 0));
          const first = one.first_off[side];
          const other = first ? Math.abs(database.firstOff(home, t) - (first[t] ?? 0)) : 0;
          found.chance = Math.max(found.chance, all, other);
        }
      }
      const p = new Float32Array(5);
      database.write(cells, 0, p, 0);
      one.probabilities.forEach((q, k) => (found.probability = Math.max(found.probability, Math.abs(q - p[k]))));
    }
  }
  return found;
}

/** Every storage of every net: the flat file and the ONNX file hold the same net. */
export async function checkStorages(bundle: Bundle, ort: OrtModule): Promise<Found> {
  const found: Found = { nets: 0, difference: 0 };
  for (const net of Object.keys(bundle.record.nets)) {
    const cells = startBoard(bundle.netRecord(net).variant);
    for (const storage of ["float32", "float16", "int8"] as Storage[]) {
      const flat: FlatNet = await bundle.flatNet(net, storage);
      const onnx = await bundle.net(net, { ort, storage });
      found.difference = Math.max(found.difference, await largest(onnx, cells, await flat.evaluate(cells, 1)));
      found.nets++;
    }
  }
  return found;
}

/**
 * Everything in the reference: what differs, and by how much.
 *
 * Levels that look ahead decide in plain TypeScript, which is faster there, and every tenth time by
 * the runtime, too; those count apart. Where a net calls several replies equally good, as an
 * untrained one does when it is sure of the result, rounding decides which of them is looked into.
 */
export async function checkReference(bundle: Bundle, ort: OrtModule, reference: Reference): Promise<Found> {
  const found: Found = { positions: 0, flat: 0, onnx: 0, rolls: 0, wrongRolls: 0, bestPlays: 0, wrongBestFlat: 0,
    wrongBestOnnx: 0, wrongChoices: 0, deepByRuntime: 0, differByRuntime: 0, values: 0, value: 0 };
  const cells = new Int8Array(fromBase64(reference.boards).buffer);
  const at = (i: number) => cells.slice(i * CELLS, (i + 1) * CELLS);
  found.positions = cells.length / CELLS;
  for (const [net, probabilities] of Object.entries(reference.probabilities)) {
    const expected = new Float32Array(fromBase64(probabilities).buffer);
    found.flat = Math.max(found.flat, await largest(await bundle.flatNet(net), cells, expected));
    found.onnx = Math.max(found.onnx, await largest(await bundle.net(net, { ort }), cells, expected));
  }
  const [first] = Object.keys(reference.probabilities);
  const evaluators = { Flat: await bundle.flatNet(first), Onnx: await bundle.net(first, { ort }) };
  for (const { finals, best } of reference.rolls) {
    if (best === null) continue;
    found.bestPlays++;
    const wanted = new Int8Array(fromBase64(finals).buffer);
    for (const [name, net] of Object.entries(evaluators)) {
      const theirs = await net.evaluate(wanted, wanted.length / CELLS);
      let least = 0;
      for (let k = 1; k < wanted.length / CELLS; k++) {
        if (equity(theirs, 5 * k, net.points) < equity(theirs, 5 * least, net.points)) least = k;
      }
      if (least !== best) found[`wrongBest${name}`]++;
    }
  }
  reference.rolls.forEach(({ dice, finals }, i) => {
    found.rolls++;
    const wanted = new Int8Array(fromBase64(finals).buffer);
    const keys = new Set<string>();
    for (let k = 0; k < wanted.length; k += CELLS) keys.add(key(wanted.slice(k, k + CELLS)));
    const plays = legalPlays(at(i), ...dice);
    const ours = plays.length > 0 ? plays.map((moves) => key(boardAfter(at(i), moves))) : [key(swapped(at(i)))];
    if (ours.length !== keys.size || ours.some((one) => !keys.has(one))) found.wrongRolls++;
  });
  const [byRuntime, plain] = [loader(bundle, ort), loader(bundle)];
  for (const [i, choice] of reference.choices.entries()) {
    const board = at(choice.at);
    const wanted = key(new Int8Array(fromBase64(choice.board).buffer));
    const deep = bundle.level(choice.level).plies > 0;
    const agrees = async (load: Loader) => {
      const bot = await load(choice.level, choice.style);
      return chooses(bot, await bot.rankPlays(board, ...choice.dice), choice.chance, wanted);
    };
    if (!(await agrees(deep ? plain : byRuntime))) found.wrongChoices++;
    if (deep && i % 10 === 0) {
      found.deepByRuntime++;
      if (!(await agrees(byRuntime))) found.differByRuntime++;
    }
    const name = `choices of ${choice.level}`;
    found[name] = (found[name] ?? 0) + 1;
  }
  for (const { level, at: i, plies, probabilities } of reference.values) {
    const bot = await (plies > 1 ? plain : byRuntime)(level, null);
    const wanted = new Float32Array(fromBase64(probabilities).buffer);
    const ours = await values(bot.net, at(i), 1, plies, bot.level.filters.reply, bot.pruner);
    found.values++;
    found.value = wanted.reduce((most, p, k) => Math.max(most, Math.abs(p - ours[k])), found.value);
  }
  return found;
}
