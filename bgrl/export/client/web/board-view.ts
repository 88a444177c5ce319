/** The board as an SVG whose points are buttons with a label each. */
import { BAR, Board, OFF, SLOTS } from "../src/index.js";

const NS = "http://www.w3.org/2000/svg";
const WIDE = 58;
const R = 25;
const BAR_WIDE = 64;
const TRAY = 72;
const TALL = 620;
const SHOWN = 5;
const WIDTH = 12 * WIDE + BAR_WIDE + TRAY;

export type State = "" | "source" | "chosen" | "target";

function element(name: string, attributes: Record<string, string | number>, parent: Element): SVGElement {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  parent.append(made);
  return made;
}

/** The left edge of my point. */
function left(point: number): number {
  const column = point <= 12 ? 12 - point : point - 13;
  return column * WIDE + (column >= 6 ? BAR_WIDE : 0);
}

function stack(parent: Element, x: number, bottom: boolean, count: number, mine: boolean, from = 0): void {
  const [fill, line, ink] = mine ? ["#fffdf7", "#2b2118", "#2b2118"] : ["#2f2b30", "#0f0d10", "#fffdf7"];
  for (let i = 0; i < Math.min(count, SHOWN); i++) {
    const depth = from + R + 2 + i * (2 * R + 1);
    element("circle", { cx: x, cy: bottom ? TALL - depth : depth, r: R, fill, stroke: line, "stroke-width": 2 }, parent);
  }
  if (count > SHOWN) {
    const depth = from + R + 2 + (SHOWN - 1) * (2 * R + 1);
    const text = element("text", { x, y: (bottom ? TALL - depth : depth) + 6, fill: ink }, parent);
    text.textContent = String(count);
  }
}

function named(count: number, whose: string): string {
  return `${count} of ${whose} checkers`;
}

/** What a screen reader says of a slot, seen by the player at the bottom. */
export function describeSlot(board: Board, slot: number): string {
  if (slot === OFF) return `Borne off: ${named(board[OFF], "your")}, ${named(board[SLOTS + OFF], "the bot's")}`;
  if (slot === BAR) return `Bar: ${named(board[BAR], "your")}, ${named(board[SLOTS + BAR], "the bot's")}`;
  const theirs = board[SLOTS + 25 - slot];
  const held = board[slot] > 0 ? named(board[slot], "your") : theirs > 0 ? named(theirs, "the bot's") : "empty";
  return `Point ${slot}: ${held}`;
}

/** Draw `board`, seen by the player in row 0, into `host`; `press` hears of slots that are chosen. */
export function drawBoard(
  host: HTMLElement, board: Board, states: ReadonlyMap<number, State>, press: (slot: number) => void,
): void {
  const focused = host.querySelector<SVGElement>(":focus")?.dataset.slot;
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `-6 -26 ${WIDTH + 12} ${TALL + 52}`);
  element("rect", { x: -6, y: -26, width: WIDTH + 12, height: TALL + 52, rx: 8, fill: "#4b3426" }, svg);
  element("rect", { x: 0, y: 0, width: 6 * WIDE, height: TALL, fill: "#f3ead8" }, svg);
  element("rect", { x: 6 * WIDE + BAR_WIDE, y: 0, width: 6 * WIDE, height: TALL, fill: "#f3ead8" }, svg);
  const button = (slot: number, x: number, y: number, width: number, height: number): SVGElement => {
    const state = states.get(slot) ?? "";
    const extra = { source: ", can move", chosen: ", chosen", target: ", can be reached", "": "" }[state];
    const group = element("g", {
      role: "button", tabindex: 0, "data-slot": slot, "data-state": state, "aria-label": describeSlot(board, slot) + extra,
    }, svg);
    const hit = element("rect", { class: "hit", x, y, width, height }, group);
    group.addEventListener("click", () => press(slot));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      press(slot);
    });
    group.append(hit);
    return group;
  };
  for (let point = 24; point >= 1; point--) {
    const bottom = point <= 12;
    const x = left(point);
    const base = bottom ? TALL : 0;
    const tip = bottom ? TALL - 270 : 270;
    const group = button(point, x, bottom ? TALL / 2 + 20 : 0, WIDE, TALL / 2 - 20);
    const fill = point % 2 ? "#d9bd8c" : "#a9744f";
    const shape = element("polygon", { points: `${x},${base} ${x + WIDE},${base} ${x + WIDE / 2},${tip}`, fill }, group);
    group.prepend(shape);
    const label = element("text", { x: x + WIDE / 2, y: bottom ? TALL + 19 : -9, fill: "#f3ead8" }, group);
    label.textContent = String(point);
    const theirs = board[SLOTS + 25 - point];
    stack(group, x + WIDE / 2, bottom, board[point] || theirs, board[point] > 0);
  }
  const middle = 6 * WIDE + BAR_WIDE / 2;
  const bar = button(BAR, 6 * WIDE, 0, BAR_WIDE, TALL);
  stack(bar, middle, true, board[BAR], true, 40);
  stack(bar, middle, false, board[SLOTS + BAR], false, 40);
  const tray = button(OFF, 12 * WIDE + BAR_WIDE, 0, TRAY, TALL);
  for (const [side, y] of [[0, TALL - 16], [1, 30]] as const) {
    const text = element("text", { x: 12 * WIDE + BAR_WIDE + TRAY / 2, y, fill: "#f3ead8" }, tray);
    text.textContent = `${board[side * SLOTS + OFF]} off`;
  }
  host.replaceChildren(svg);
  if (focused !== undefined) host.querySelector<SVGElement>(`[data-slot="${focused}"]`)?.focus();
}
