/** A game against a bot: the page's state, and what its buttons do. */
import {
  Board, Level, RankedPlay, RemoteBots, Turn, formatPlay, lossLevel, pipCount, startBoard, swapped,
} from "../src/index.js";
import { State, drawBoard } from "./board-view.js";

type Dice = [number, number];

const byId = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const ui = {
  board: byId("board"), level: byId<HTMLSelectElement>("level"), style: byId<HTMLSelectElement>("style"), score: byId("score"), status: byId("status"),
  dice: byId("dice"), pips: byId("pips"), evaluation: byId("evaluation"), hints: byId("hints"),
  roll: byId<HTMLButtonElement>("roll"), undo: byId<HTMLButtonElement>("undo"),
  done: byId<HTMLButtonElement>("done"), hint: byId<HTMLButtonElement>("hint"), new: byId<HTMLButtonElement>("new"),
};

/** A fair die from the browser's own source of randomness. */
function die(): number {
  const byte = new Uint8Array(1);
  // 252 is the largest multiple of 6 below 256: higher bytes would favour low numbers.
  do crypto.getRandomValues(byte); while (byte[0] >= 252);
  return (byte[0] % 6) + 1;
}

class Game {
  /** Always seen by the person; whose turn it is, is said apart. */
  board: Board = startBoard();
  turn: Turn | null = null;
  chosen: number | null = null;
  phase: "roll" | "move" | "bot" | "over" = "over";
  /** Counts games and turns, so that an answer that comes too late is dropped. */
  moment = 0;
  score: [number, number] = [0, 0];

  constructor(private readonly bots: RemoteBots) {}

  get level(): string {
    return ui.level.value;
  }

  /** The style asked for, or null for the level's own. */
  get style(): string | null {
    const own = this.bots.levels.find(({ name }) => name === this.level)?.style.name;
    return ui.style.value === own ? null : ui.style.value;
  }

  /** How texts call the opponent. */
  get opponent(): string {
    return title(this.level);
  }

  say(text: string): void {
    ui.status.textContent = text;
  }

  start(): void {
    this.moment++;
    this.board = startBoard();
    this.turn = null;
    ui.hints.replaceChildren();
    let dice: Dice;
    do dice = [die(), die()]; while (dice[0] === dice[1]);
    if (dice[0] > dice[1]) {
      this.say(`You start with ${dice[0]} and ${dice[1]}.`);
      this.begin(dice);
    } else {
      this.say(`${this.opponent} starts with ${dice[1]} and ${dice[0]}.`);
      void this.botPlays(dice);
    }
  }

  roll(): void {
    if (this.phase === "roll") this.begin([die(), die()]);
  }

  begin(dice: Dice): void {
    this.moment++;
    this.turn = new Turn(this.board, dice);
    this.chosen = null;
    this.phase = "move";
    ui.hints.replaceChildren();
    if (this.turn.isDance) this.say(`You rolled ${dice.join("-")}: no checker can move.`);
    else this.say(`You rolled ${dice.join("-")}.`);
    this.show();
  }

  press(slot: number): void {
    if (this.phase !== "move" || !this.turn) return;
    const options = this.turn.options();
    if (this.chosen !== null && this.turn.play(this.chosen, slot)) this.chosen = null;
    else if (options.some((step) => step.from === slot)) this.chosen = this.chosen === slot ? null : slot;
    else this.chosen = null;
    this.show();
  }

  undo(): void {
    if (this.phase === "move" && this.turn?.undo()) {
      this.chosen = null;
      this.show();
    }
  }

  done(): void {
    if (this.phase !== "move" || !this.turn?.isComplete) return;
    this.board = this.turn.board;
    this.turn = null;
    if (this.ended(swapped(this.board), 0)) return;
    void this.botPlays([die(), die()]);
  }

  async botPlays(dice: Dice): Promise<void> {
    const moment = ++this.moment;
    this.phase = "bot";
    this.show(dice);
    const before = swapped(this.board);
    const { level, opponent } = this;
    this.say(`${opponent} rolled ${dice.join("-")} and thinks …`);
    let play: RankedPlay | null;
    try {
      play = await this.bots.choose(level, before, dice, this.style);
    } catch (error) {
      if (moment === this.moment) this.fail(error);
      return;
    }
    if (moment !== this.moment) return;
    this.board = play ? play.board : this.board;
    const text = play ? `plays ${formatPlay(before, play.moves, dice)}` : "cannot move";
    this.say(`${opponent} rolled ${dice.join("-")} and ${text}.`);
    if (this.ended(this.board, 1)) return;
    this.phase = "roll";
    this.show();
    await this.showEvaluation();
  }

  async hint(): Promise<void> {
    if (this.phase !== "move" || !this.turn || this.turn.isDance) return;
    const moment = this.moment;
    const { dice } = this.turn;
    const board = this.board;
    // Hints never miss: the strongest level ranks, and no chance is involved.
    const strongest = this.bots.levels.reduce((best, level) => (better(level, best) ? level : best));
    ui.hint.disabled = true;
    let plays: RankedPlay[];
    try {
      plays = await this.bots.rankPlays(strongest.name, board, [dice[0], dice[1]]);
    } catch (error) {
      if (moment === this.moment) this.say(`There is no hint: ${reason(error)}`);
      return;
    }
    if (moment !== this.moment) return;
    ui.hint.disabled = false;
    ui.hints.replaceChildren(...plays.slice(0, 5).map((play: RankedPlay) => {
      const item = document.createElement("li");
      const lost = play.equity - plays[0].equity;
      item.textContent = `${formatPlay(board, play.moves, [dice[0], dice[1]])}  ${signed(play.equity)}` +
        (lost < 0 ? ` (${signed(lost)})` : "");
      return item;
    }));
  }

  /** The bot cannot go on: say why. A new game tries again. */
  private fail(error: unknown): void {
    this.phase = "over";
    this.show();
    this.say(`${this.opponent} cannot play: ${reason(error)}`);
  }

  private async showEvaluation(): Promise<void> {
    const moment = this.moment;
    const [win, winGammon, , loseGammon] = await this.bots.evaluate(this.level, this.board);
    if (moment !== this.moment) return;
    const percent = (p: number) => `${(100 * p).toFixed(1)}%`;
    ui.evaluation.textContent = `${this.opponent} thinks that you win ${percent(win)} (gammon ${percent(winGammon)}) ` +
      `and lose ${percent(1 - win)} (gammon ${percent(loseGammon)}).`;
  }

  /** Whether the player on roll of `board` has lost; `loser` 0 is the bot, 1 the person. */
  private ended(board: Board, loser: 0 | 1): boolean {
    const level = lossLevel(board);
    if (level === 0) return false;
    this.phase = "over";
    this.score[loser] += level;
    const how = ["", "a game", "a gammon", "a backgammon"][level];
    this.say(loser === 0 ? `You win ${how}.` : `${this.opponent} wins ${how}.`);
    this.show();
    return true;
  }

  show(botDice?: Dice): void {
    const board = this.turn?.board ?? this.board;
    const states = new Map<number, State>();
    const options = this.phase === "move" ? this.turn?.options() ?? [] : [];
    for (const { from, to } of options) {
      if (this.chosen === null) states.set(from, "source");
      else if (from === this.chosen) states.set(to, "target");
    }
    if (this.chosen !== null) states.set(this.chosen, "chosen");
    drawBoard(ui.board, board, states, (slot) => this.press(slot));
    const dice = botDice ?? this.turn?.dice;
    ui.dice.textContent = dice ? `Dice ${dice.join(" ")}` : "";
    ui.pips.textContent = `Pips to go: you ${pipCount(board, 0)}, the bot ${pipCount(board, 1)}`;
    ui.score.textContent = `You ${this.score[0]} : ${this.score[1]} bot`;
    ui.roll.disabled = this.phase !== "roll";
    ui.undo.disabled = this.phase !== "move" || !this.turn?.steps.length;
    ui.done.disabled = this.phase !== "move" || !this.turn?.isComplete;
    ui.hint.disabled = this.phase !== "move" || !!this.turn?.isDance;
  }
}

function better(a: Level, b: Level): boolean {
  if (a.plies !== b.plies) return a.plies > b.plies;
  return a.misses === null && b.misses !== null;
}

function title(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** How a level stands in the list: its rating where one was measured. */
function described({ name, measured }: Level): string {
  return measured?.rating ? `${title(name)} (${Math.round(measured.rating.value)})` : title(name);
}

function signed(equity: number): string {
  return (equity < 0 ? "−" : "+") + Math.abs(equity).toFixed(3);
}

async function main(): Promise<void> {
  const here = new URL(".", document.baseURI);
  // Plain TypeScript is faster where a bot looks ahead, and has nothing to download.
  const runtime = new URLSearchParams(location.search).has("runtime")
    ? { runtime: new URL("runtime/ort.wasm.min.mjs", here) }
    : {};
  // Half the download, and no measurable loss.
  const bots = await RemoteBots.open(
    new URL("client/src/worker.js", here), new URL("bots/", here), { ...runtime, storage: "float16" },
  );
  for (const level of bots.levels) ui.level.append(new Option(described(level), level.name));
  for (const { name } of bots.styles) ui.style.append(new Option(title(name), name));
  const ownStyle = () => {
    const own = bots.levels.find(({ name }) => name === ui.level.value)?.style;
    if (own && !bots.styles.some(({ name }) => name === own.name)) ui.style.append(new Option(title(own.name), own.name));
    ui.style.value = own?.name ?? "";
  };
  ownStyle();
  ui.level.onchange = ownStyle;
  const game = new Game(bots);
  ui.new.onclick = () => game.start();
  ui.roll.onclick = () => game.roll();
  ui.undo.onclick = () => game.undo();
  ui.done.onclick = () => game.done();
  ui.hint.onclick = () => void game.hint();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLSelectElement) return;
    const actions: Record<string, () => void> = {
      r: () => game.roll(), z: () => game.undo(), d: () => game.done(), h: () => void game.hint(),
    };
    actions[event.key.toLowerCase()]?.();
  });
  game.start();
}

main().catch((error: unknown) => {
  ui.status.textContent = `The bots cannot be loaded: ${reason(error)}`;
});
