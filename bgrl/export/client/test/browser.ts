/**
 * Plays the page in headless Chromium and runs the same checks inside it as Node does.
 *
 * Usage: node browser.js URL OUTPUT [CHROMIUM [TURNS]], with the site at URL, the compiled tests below
 * URL/client/test and the reference at URL/reference.json. Writes result.json and pictures to the
 * folder OUTPUT. Exits non-zero if the browser reports any error.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Page, chromium } from "playwright-core";

const [url, output, executablePath = "/usr/bin/chromium", turns = "30"] = process.argv.slice(2);

/** Inside the page: golden vectors, reference, and how long decisions take in a worker. */
async function measure(page: Page): Promise<unknown> {
  return page.evaluate(async () => {
    const base = document.baseURI;
    const client = (await import(new URL("client/src/index.js", base).href)) as typeof import("../src/index.js");
    const checks = (await import(new URL("client/test/checks.js", base).href)) as typeof import("./checks.js");
    const runtime = new URL("runtime/ort.wasm.min.mjs", base).href;
    const ort = (await import(runtime)) as import("../src/index.js").OrtModule;
    ort.env.wasm.wasmPaths = new URL("runtime/", base).href;
    const bots = new URL("bots/", base);
    const bundle = await client.Bundle.open(client.readFrom(bots));
    const reference = (await (await fetch("reference.json")).json()) as import("./checks.js").Reference;
    const golden = await checks.checkGolden(bundle, ort);
    const bearoff = await checks.checkBearoff(bundle);
    const found = await checks.checkReference(bundle, ort, reference);
    const times: Record<string, { median: number; worst: number; decisions: number }> = {};
    for (const [name, withRuntime] of [["runtime", true], ["plain", false]] as const) {
      const remote = await client.RemoteBots.open(
        new URL("client/src/worker.js", base), bots, withRuntime ? { runtime } : {},
      );
      for (const level of remote.levels) {
        let board = client.startBoard();
        await remote.choose(level.name, board, [3, 1]);
        const spent: number[] = [];
        const decisions = level.plies > 1 ? 24 : 40;
        for (let i = 0; i < decisions; i++) {
          const dice: [number, number] = [(i % 6) + 1, ((i * 5) % 6) + 1];
          const start = performance.now();
          const play = await remote.choose(level.name, board, dice);
          spent.push(performance.now() - start);
          board = play ? play.board : client.swapped(board);
        }
        spent.sort((a, b) => a - b);
        times[`${level.name}, ${name}`] = {
          median: spent[spent.length >> 1], worst: spent[spent.length - 1], decisions,
        };
      }
      remote.close();
    }
    return { isolated: crossOriginIsolated, golden, bearoff, found, times };
  });
}

/** Play a game, or its first turns, by keyboard alone. */
async function playByKeyboard(page: Page, most: number): Promise<{ turns: number; status: string; labels: string[] }> {
  const labels = await page.locator("#board [role=button]").evaluateAll((points) =>
    points.map((point) => point.getAttribute("aria-label") ?? ""));
  let turns = 0;
  // The bot may think for seconds on a busy machine; a turn has a minute.
  const end = Date.now() + 60_000 * most;
  while (Date.now() < end) {
    const status = (await page.textContent("#status")) ?? "";
    if (/wins|You win/.test(status) || turns === most) return { turns, status, labels };
    if (await page.locator("#roll").isEnabled()) {
      await page.keyboard.press("r");
    } else if (await page.locator("#done").isEnabled()) {
      await page.keyboard.press("d");
      turns++;
    } else {
      const source = page.locator("#board [data-state=source]").first();
      if ((await source.count()) === 0) {
        await page.waitForTimeout(20);
        continue;
      }
      await source.focus();
      await page.keyboard.press("Enter");
      await page.locator("#board [data-state=target]").first().focus();
      await page.keyboard.press("Enter");
    }
  }
  throw new Error("the game did not end");
}

/** The first turns against each level in each style, as chosen in the lists; what each game says at last. */
async function playEveryStyle(page: Page): Promise<Record<string, string>> {
  const last: Record<string, string> = {};
  const values = (id: string) => page.locator(`${id} option`).evaluateAll((options) =>
    options.map((option) => (option as HTMLOptionElement).value));
  for (const level of await values("#level")) {
    for (const style of await values("#style")) {
      await page.selectOption("#level", level);
      await page.selectOption("#style", style);
      await page.click("#new");
      await playByKeyboard(page, 2);
      await page.waitForFunction(() => !/thinks …/.test(document.querySelector("#status")?.textContent ?? ""));
      last[`${level}, ${style}`] = (await page.textContent("#status")) ?? "";
    }
  }
  return last;
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 1000, height: 1180 } });
  const errors: string[] = [];
  const sent = new Map<string, number>();
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  page.on("response", (response) => {
    if (response.status() === 200) sent.set(response.url(), Number(response.headers()["content-length"]));
  });
  await page.goto(url);
  await page.waitForFunction(() => !document.querySelector("#status")?.textContent?.startsWith("Loading"));
  await page.waitForFunction(() => !(document.querySelector("#roll") as HTMLButtonElement).disabled
    || document.querySelectorAll("#board [data-state=source]").length > 0
    || !(document.querySelector("#done") as HTMLButtonElement).disabled);
  if (await page.locator("#roll").isEnabled()) await page.click("#roll");
  if (await page.locator("#hint").isEnabled()) {
    await page.click("#hint");
    await page.waitForSelector("#hints li", { timeout: 20_000 });
  }
  const source = page.locator("#board [data-state=source]").first();
  if ((await source.count()) > 0) await source.click();
  await page.screenshot({ path: join(output, "page.png") });
  const chosen = page.locator("#board [data-state=chosen]");
  if ((await chosen.count()) > 0) await chosen.click();
  const pageBytes = [...sent.values()].reduce((sum, size) => sum + size, 0);
  const game = await playByKeyboard(page, Number(turns));
  const phone = await browser.newPage({ viewport: { width: 390, height: 800 }, hasTouch: true });
  await phone.goto(url);
  await phone.waitForFunction(() => document.querySelectorAll("#board [role=button]").length === 26);
  await phone.waitForFunction(() => !(document.querySelector("#roll") as HTMLButtonElement).disabled
    || document.querySelectorAll("#board [data-state=source]").length > 0);
  if (await phone.locator("#roll").isEnabled()) await phone.tap("#roll");
  const touched = phone.locator("#board [data-state=source]").first();
  let touchChose = true;
  if ((await touched.count()) > 0) {
    await touched.tap();
    touchChose = (await phone.locator("#board [data-state=chosen]").count()) === 1;
  }
  await phone.screenshot({ path: join(output, "phone.png") });
  const styles = await playEveryStyle(page);
  const measured = await measure(page);
  const result = { errors, pageBytes, game, touchChose, styles, measured };
  await writeFile(join(output, "result.json"), JSON.stringify(result, null, 2));
  if (errors.length > 0) throw new Error(errors.join("\n"));
} finally {
  await browser.close();
}
