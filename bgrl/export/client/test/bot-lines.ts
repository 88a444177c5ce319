/**
 * A bot that answers on standard output: `node bot-lines.js BUNDLE LEVEL`. Each line in is JSON
 * {"board": 52 counts, "dice": [a, b], "chance": 0 up to 1}; each line out the 52 counts that the
 * opponent faces.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as ort from "onnxruntime-web";
import { Bot, Bundle, swapped } from "../src/index.js";

const [folder, level] = process.argv.slice(2);
const bundle = await Bundle.open(async (name) => new Uint8Array(await readFile(join(folder, name))));
const bot = await Bot.load(bundle, level, { ort });
for await (const line of createInterface({ input: process.stdin })) {
  const { board, dice, chance } = JSON.parse(line) as { board: number[]; dice: [number, number]; chance: number };
  const cells = Int8Array.from(board);
  const play = await bot.choose(cells, ...dice, chance);
  process.stdout.write(`${JSON.stringify(Array.from(play ? play.board : swapped(cells)))}\n`);
}
