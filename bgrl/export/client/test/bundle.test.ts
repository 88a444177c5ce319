/** A bundle's files and answers. BGRL_BUNDLE names its folder, BGRL_REFERENCE what bgrl computed. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import * as ort from "onnxruntime-web";
import { Bot, Bundle, BundleError, FlatNet, OnnxNet, ReadFile, startBoard } from "../src/index.js";
import { checkGolden, checkReference, checkStorages, Reference } from "./checks.js";

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
  assert.equal(found.wrongRolls, 0);
  assert.equal(found.wrongChoices, 0);
  assert.ok(found.positions >= 1000 && found.rolls > 0 && found.choices > 0 && found.values > 0);
  assert.ok(found.flat < 1e-5 && found.onnx < 1e-5 && found.value < 1e-5);
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
  for (const name of ["levels.json", `${net}.onnx`, `${net}.int8.bgnet`]) {
    await refused(changed(name, (data) => data.subarray(0, data.length - 5)), name, /bytes/);
    await refused(changed(name, (data) => { const copy = data.slice(); copy[copy.length - 9] ^= 1; return copy; }),
      name, /SHA-256/);
  }
  await refused(changed("bundle.json", (data) => data.subarray(0, 40)), "bundle.json", /not JSON/);
  await refused(changed("bundle.json", json((value) => { value.version = 2; })), "bundle.json", /version 2/);
  await refused(changed("bundle.json", json((value) => { value.format = "x"; })), "bundle.json", /format/);
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
  const facts = { hash: "", variant: "backgammon", points: [1, 2, 3] as const };
  await assert.rejects(OnnxNet.create(ort, flat, facts, "x.onnx"), /^BundleError: x.onnx/);
});
