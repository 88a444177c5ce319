/** A turn played one move at a time, as a person does: what may be moved next, and taking back. */
import { BAR, Board, OFF, SLOTS, swapped } from "./board.js";
import { boardAfter, legalPlays, Moves } from "./plays.js";

export interface Step {
  readonly from: number;
  readonly to: number;
  readonly die: number;
}

export class Turn {
  private readonly finals: Set<string>;
  private readonly done: Step[] = [];
  private readonly boards: Board[];
  private readonly left: number[][];
  /** How many dice stay unplayed at the end. */
  private readonly spare: number;

  constructor(board: Board, readonly dice: readonly [number, number]) {
    const [die1, die2] = dice;
    const plays = legalPlays(board, die1, die2);
    // boardAfter gives the opponent's view; here the mover stays first.
    this.finals = new Set(plays.map((moves) => swapped(boardAfter(board, moves)).join()));
    this.boards = [board.slice()];
    this.left = [die1 === die2 ? [die1, die1, die1, die1] : [Math.max(die1, die2), Math.min(die1, die2)]];
    this.spare = this.left[0].length - Math.max(0, ...plays.map((moves) => moves.length));
  }

  /** The board as it stands now, the mover first. */
  get board(): Board {
    return this.boards[this.boards.length - 1];
  }

  get steps(): readonly Step[] {
    return this.done;
  }

  /** The steps as [from, to], for notation. */
  get moves(): Moves {
    return this.done.map(({ from, to }) => [from, to]);
  }

  get isDance(): boolean {
    return this.finals.size === 0;
  }

  /** Whether the turn may end here. */
  get isComplete(): boolean {
    return this.isDance || this.ends(this.board, this.diceLeft);
  }

  /** The dice not yet played. */
  get diceLeft(): readonly number[] {
    return this.left[this.left.length - 1];
  }

  /** The moves from which the turn can still end as the rules want it. */
  options(): Step[] {
    if (this.isComplete) return [];
    return steps(this.board, this.diceLeft).filter((step) =>
      this.reaches(after(this.board, step), without(this.diceLeft, step.die)),
    );
  }

  /** Play one of `options`; false, and nothing happens, if it is none. */
  play(from: number, to: number): boolean {
    const step = this.options().find((option) => option.from === from && option.to === to);
    if (!step) return false;
    this.done.push(step);
    this.boards.push(after(this.board, step));
    this.left.push(without(this.diceLeft, step.die));
    return true;
  }

  /** Take the last move back; false if there is none. */
  undo(): boolean {
    if (this.done.length === 0) return false;
    this.done.pop();
    this.boards.pop();
    this.left.pop();
    return true;
  }

  /** A final position, and not one that a single die happens to give, too. */
  private ends(board: Board, dice: readonly number[]): boolean {
    const won = board.subarray(1, SLOTS).every((count) => count === 0);
    return (won || dice.length === this.spare) && this.finals.has(board.join());
  }

  private reaches(board: Board, dice: readonly number[]): boolean {
    if (this.ends(board, dice)) return true;
    return steps(board, dice).some((step) => this.reaches(after(board, step), without(dice, step.die)));
  }
}

function without(dice: readonly number[], die: number): number[] {
  const rest = dice.slice();
  rest.splice(rest.indexOf(die), 1);
  return rest;
}

/** What each die can move on its own. */
function steps(board: Board, dice: readonly number[]): Step[] {
  const found: Step[] = [];
  const rearmost = board.subarray(0, SLOTS).findLastIndex((count) => count > 0);
  for (const die of new Set(dice)) {
    for (let from = BAR; from > OFF; from--) {
      if (board[from] === 0 || (board[BAR] > 0 && from !== BAR)) continue;
      const to = Math.max(from - die, OFF);
      if (to > OFF ? board[SLOTS + 25 - to] >= 2 : rearmost > 6 || (from < die && from !== rearmost)) continue;
      found.push({ from, to, die });
    }
  }
  return found;
}

function after(board: Board, { from, to }: Step): Board {
  const out = board.slice();
  out[from]--;
  out[to]++;
  if (to > OFF && out[SLOTS + 25 - to] === 1) {
    out[SLOTS + 25 - to] = 0;
    out[SLOTS + BAR]++;
  }
  return out;
}
