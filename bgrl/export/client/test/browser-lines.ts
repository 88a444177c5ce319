/**
 * bot-lines.js, with the bot in headless Chromium: `node browser-lines.js URL LEVEL [CHROMIUM]`, the page
 * served at URL.
 */
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [url, level, executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  await page.goto(url);
  const bot = await page.evaluateHandle(async (name) => {
    const base = document.baseURI;
    const client = (await import(new URL("client/src/index.js", base).href)) as typeof import("../src/index.js");
    const bots = await client.RemoteBots.open(new URL("client/src/worker.js", base), new URL("bots/", base));
    return async (line: string): Promise<string> => {
      const asked = JSON.parse(line) as { board: number[]; dice: [number, number]; chance: number };
      const cells = Int8Array.from(asked.board);
      const play = await bots.choose(name, cells, asked.dice, null, asked.chance);
      return JSON.stringify(Array.from(play ? play.board : client.swapped(cells)));
    };
  }, level);
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${await bot.evaluate((answer, asked) => answer(asked), line)}\n`);
  }
} finally {
  await browser.close();
}
