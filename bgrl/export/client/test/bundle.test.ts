/** A bundle's files and answers. BGRL_BUNDLE names its folder, BGRL_REFERENCE what bgrl computed. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import * as ort from "onnxruntime-web";
import { Bearoff, Bot, Bundle, BundleError, FlatNet, OnnxNet, ReadFile, startBoard } from "../src/index.js";
import { checkBearoff, checkGolden, checkReference, checkStorages, Reference } from "./checks.js";

const folder = process.env.BGRL_BUNDLE;
const skip = folder ? false : "BGRL_BUNDLE is not set: run by `pytest -m node`";
const read: ReadFile = async (name) => new Uint8Array(await readFile(join(folder ?? "", name)));

/** The bundle with one file changed. */
function changed(name: string, change: (data: Uint8Array) => Uint8Array): ReadFile {
  return async (asked) => (asked === name ? change(await read(asked)) : read(asked));
}

const json = (change: (value: Record<string, unknown>) => void) => (data: Uint8Array) => {
  const value = JSON.parse(new TextDecoder().decode(data)) as Record<string, unknown>;
  change(value);
  return new TextEncoder().encode(JSON.stringify(value));
};

test("golden vectors", { skip }, async () => {
  const found = await checkGolden(await Bundle.open(read), ort);
  console.log("golden", JSON.stringify(found));
  const { inputsDiffer, wrongPlays, wrongOrder, wrongChoices } = found;
  assert.deepEqual({ inputsDiffer, wrongPlays, wrongOrder, wrongChoices },
    { inputsDiffer: 0, wrongPlays: 0, wrongOrder: 0, wrongChoices: 0 });
  assert.ok(found.cases > 50 && found.decisions >= 10 && found.choices > 10);
  assert.ok(found.flat < 1e-5 && found.onnx < 1e-5 && found.equity < 1e-5);
});

test("what bgrl computed for many positions", { skip }, async () => {
  const reference = JSON.parse(await readFile(process.env.BGRL_REFERENCE ?? "", "utf8")) as Reference;
  const found = await checkReference(await Bundle.open(read), ort, reference);
  console.log("reference", JSON.stringify(found));
  const { wrongRolls, wrongBestFlat, wrongBestOnnx, wrongChoices } = found;
  assert.deepEqual({ wrongRolls, wrongBestFlat, wrongBestOnnx, wrongChoices },
    { wrongRolls: 0, wrongBestFlat: 0, wrongBestOnnx: 0, wrongChoices: 0 });
  const bundle = await Bundle.open(read);
  for (const { name } of bundle.levels) assert.ok(found[`choices of ${name}`] > 0, name);
  assert.ok(found.positions >= 1000 && found.rolls > 0 && found.bestPlays > 0 && found.values > 0);
  assert.ok(found.flat < 1e-5 && found.onnx < 1e-5 && found.value < 1e-5);
});

test("the bear-off database", { skip }, async () => {
  const found = await checkBearoff(await Bundle.open(read));
  assert.ok(found.cases >= 30);
  assert.equal(found.wrongHomes, 0);
  assert.ok(found.chance < 1e-6 && found.probability < 1e-6, JSON.stringify(found));
});

test("the database is read when both sides are home, once, and again after a failure", { skip }, async () => {
  let reads = 0;
  let broken = true;
  const bundle = await Bundle.open(async (name) => {
    if (name.endsWith(".bgoff")) {
      reads++;
      if (broken) return new Uint8Array(9);
    }
    return read(name);
  });
  const bot = await Bot.load(bundle, bundle.levels[0].name);
  await bot.choose(startBoard(), 3, 1, 0);
  assert.equal(reads, 0);
  const end = new Int8Array(52);
  [end[0], end[1], end[3], end[26], end[27]] = [13, 1, 1, 14, 1];
  await assert.rejects(bot.choose(end, 2, 1, 0), /^BundleError: bearoff-15.bgoff: has 9 bytes/);
  broken = false;
  // 3/off is impossible; bearing off one checker leaves the other, and the opponent rolls one off.
  const play = await bot.choose(end, 2, 1, 0);
  assert.equal(play?.equity, -1);
  assert.deepEqual(Array.from(await bot.evaluate(end)).map((p) => Math.round(36 * p)), [34, 0, 0, 0, 0]);
  assert.equal(reads, 2);
});

test("every storage comes as the same net in both formats", { skip }, async () => {
  const found = await checkStorages(await Bundle.open(read), ort);
  assert.ok(found.nets >= 3);
  assert.ok(found.difference < 1e-5, String(found.difference));
});

test("a bot plays without a runtime, too", { skip }, async () => {
  const bundle = await Bundle.open(read);
  const bot = await Bot.load(bundle, bundle.levels[0].name);
  const plays = await bot.rankPlays(startBoard(), 3, 1);
  assert.equal(plays.length, 16);
  assert.equal(await bot.choose(startBoard(), 3, 1, 0).then((play) => play?.equity), plays[0].equity);
});

test("damaged files are refused by name", { skip }, async () => {
  const bundle = await Bundle.open(read);
  const { net } = bundle.levels[0];
  const refused = async (source: ReadFile, name: string, reason: RegExp) => {
    await assert.rejects(
      async () => { await (await Bundle.open(source)).file(name); },
      (error: Error) => error instanceof BundleError && error.message.startsWith(name) && reason.test(error.message),
    );
  };
  for (const name of ["levels.json", `${net}.onnx`, `${net}.int8.bgnet`, "bearoff-15.bgoff"]) {
    await refused(changed(name, (data) => data.subarray(0, data.length - 5)), name, /bytes/);
    await refused(changed(name, (data) => { const copy = data.slice(); copy[copy.length - 9] ^= 1; return copy; }),
      name, /SHA-256/);
  }
  await refused(changed("bundle.json", (data) => data.subarray(0, 40)), "bundle.json", /not JSON/);
  await refused(changed("bundle.json", json((value) => { value.version = 2; })), "bundle.json", /version 2/);
  await refused(changed("bundle.json", json((value) => { value.format = "x"; })), "bundle.json", /format/);
  await refused(changed("bundle.json", json((value) => { delete value.nets; })), "bundle.json", /names no nets/);
  await assert.rejects(bundle.file("secrets.txt"), /secrets.txt: not named/);
  assert.throws(() => bundle.level("nobody"), /nobody/);
});

test("damaged nets are refused by name", { skip }, async () => {
  const bundle = await Bundle.open(read);
  const { net } = bundle.levels[0];
  const flat = await bundle.file(`${net}.bgnet`);
  assert.throws(() => FlatNet.parse(flat.subarray(0, 5000), "x.bgnet"), /^BundleError: x.bgnet: cut short/);
  const other = flat.slice();
  other[8] = 7;
  assert.throws(() => FlatNet.parse(other, "x.bgnet"), /^BundleError: x.bgnet: version 7/);
  assert.throws(() => FlatNet.parse(flat.subarray(1), "x.bgnet"), /^BundleError: x.bgnet: no flat net/);
  assert.throws(() => bundle.netRecord("nobody"), /^BundleError: there is no net nobody/);
  assert.throws(() => bundle.style("nobody"), /^BundleError: there is no style nobody: balanced, /);
  const database = await bundle.bearoff("bearoff-15.bgoff").then(() => bundle.file("bearoff-15.bgoff"));
  assert.throws(() => Bearoff.parse(database.subarray(0, 5000), "x.bgoff"), /^BundleError: x.bgoff: cut short or altered/);
  assert.throws(() => Bearoff.parse(database.subarray(0, 40), "x.bgoff"), /^BundleError: x.bgoff: cut short/);
  assert.throws(() => Bearoff.parse(database.subarray(1), "x.bgoff"), /^BundleError: x.bgoff: no bear-off database/);
  const later = database.slice();
  later[8] = 2;
  assert.throws(() => Bearoff.parse(later, "x.bgoff"), /^BundleError: x.bgoff: version 2/);
  const facts = { hash: "", variant: "backgammon", points: [1, 2, 3] as const };
  await assert.rejects(OnnxNet.create(ort, flat, facts, "x.onnx"), /^BundleError: x.onnx/);
});
