/** Positions that other engines have got wrong, each with every legal final position spelled out. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import {
  Board, SLOTS, boardAfter, formatPlay, fromPositionId, legalPlays, lossLevel, pipCount, positionId,
  startBoard, swapped,
} from "../src/index.js";
import { sha256Hex } from "../src/sha256.js";

type Side = Record<number, number>;

/** The mover's checkers in a board, borne-off ones left out, as text. */
function side(board: Board, which: 0 | 1): string {
  const slots = Array.from(board.subarray(which * SLOTS + 1, (which + 1) * SLOTS));
  return slots.flatMap((n, i) => (n > 0 ? [`${i + 1}:${n}`] : [])).join(" ");
}

function text(counts: Side): string {
  return Object.entries(counts).map(([slot, n]) => `${slot}:${n}`).join(" ");
}

const CASES: [string, string, [number, number], Side[]][] = [
  ["both dice although the larger alone plays more ways", "8N4ZAAbg/xMAIA", [6, 2], [{ 2: 1, 6: 13, 22: 1 }]],
  ["either die but not both: the higher", "ABgA8P8DAAABAA", [6, 5], [{ 2: 14, 18: 1 }]],
  ["only the smaller die plays", "wGAAwP8PAAAEAA", [6, 5], [{ 2: 14, 19: 1 }]],
  ["a first move that strands the other die is illegal", "wDAAwP8HBAAEAA", [6, 4], [{ 2: 13, 3: 1, 20: 1 }]],
  ["several on the bar, one open point", "wzgAAOBz8ABwAA", [6, 5], [{ 6: 5, 8: 3, 13: 4, 19: 1, 25: 2 }]],
  ["a closed board: dance", "27YBAAB8HnwACA", [6, 6], []],
  ["either number enters but not both: the larger", "AAwA8P8DAAACAA", [6, 5], [{ 2: 14, 19: 1 }]],
  ["the larger number cannot enter", "YDAAwP8PAAAIAA", [6, 5], [{ 2: 14, 20: 1 }]],
  ["bearing off goes on when the first die bears nothing off", "AwAAEAEAAAAAAA", [4, 2], [{ 1: 1 }, { 2: 1 }]],
  ["the last checker: every order wins", "AwAAQAAAAAAAAA", [6, 2], [{}]],
  ["the second die bears off from below", "AwAAgAIAAAAAAA", [6, 1], [{ 4: 1 }, { 5: 1 }]],
  ["bearing off against anchors and the bar", "AADAFrYBAAAAAA", [5, 4], [{ 4: 1, 5: 1, 6: 2 }]],
  ["blocked by anchors while bearing off", "AABgBjkAAAAAAA", [3, 3], []],
  ["the same points with and without a hit", "ACAA+P8BEAAAAA", [3, 2], [{ 2: 14, 8: 1 }, { 2: 14, 8: 1 }]],
  ["hits on either way are two plays, not three", "AKAA8P8DIAAAAA", [3, 2], [{ 2: 14, 8: 1 }, { 2: 14, 8: 1 }]],
];

for (const [name, id, dice, expected] of CASES) {
  test(name, () => {
    const board = fromPositionId(id);
    assert.equal(positionId(board), id);
    for (const [die1, die2] of [dice, [dice[1], dice[0]]]) {
      const finals = legalPlays(board, die1, die2).map((moves) => side(boardAfter(board, moves), 1));
      assert.deepEqual(finals.sort(), expected.map(text).sort());
    }
  });
}

test("every opening roll has the known number of plays", () => {
  const known = "11:42 21:15 22:75 31:16 32:17 33:73 41:14 42:18 43:17 44:52 51:8 52:8 53:9 54:9 55:4 61:10 62:14 63:14 64:14 65:7 66:11";
  for (const entry of known.split(" ")) {
    const [roll, count] = entry.split(":");
    assert.equal(legalPlays(startBoard(), Number(roll[0]), Number(roll[1])).length, Number(count), roll);
  }
  const hyper = startBoard("hypergammon");
  assert.deepEqual([[3, 1], [1, 1], [6, 6]].map(([a, b]) => legalPlays(hyper, a, b).length), [7, 7, 12]);
  const nack = startBoard("nackgammon");
  assert.equal(positionId(nack), "4Dl4ADbgOXgANg");
  assert.deepEqual([[3, 1], [1, 1], [6, 6]].map(([a, b]) => legalPlays(nack, a, b).length), [22, 70, 3]);
});

test("winning rolls score as they should", () => {
  const ids = ["/z8AAIAAAAAAAA", "4P8PAAABAAAAAA", "4P8HAEABAAAAAA", "4P8HAAEBAAAAAA", "4P8HgAABAAAAAA",
    "4P8DAKAAAAAAAA", "4P8DAIgAAAAAAA", "AADA/x8BAAAAAA"];
  const levels = ids.map((id) => {
    const board = fromPositionId(id);
    const plays = legalPlays(board, 2, 1);
    assert.ok(plays.length > 0);
    return lossLevel(boardAfter(board, plays[0]));
  });
  assert.deepEqual(levels, [1, 2, 3, 3, 2, 1, 1, 3]);
});

test("position IDs: the side not on roll comes first, and bad ones are refused", () => {
  const board = fromPositionId("4DMIAAYHAEAAAA");
  assert.equal(side(board, 0), "1:2 6:3 25:1");
  assert.equal(side(board, 1), "6:5 8:2 13:1");
  assert.equal(positionId(swapped(board)), "gwMAIPAZBAAAAA");
  assert.equal(positionId(startBoard()), "4HPwATDgc/ABMA");
  assert.equal(pipCount(startBoard(), 0), 167);
  assert.equal(positionId(fromPositionId(" 4HPwATDgc/ABMA== ")), "4HPwATDgc/ABMA");
  for (const id of ["4HPwATDgc/ABM", "4HPwATDgc_ABMA", "//////////////", ""]) {
    assert.throws(() => fromPositionId(id), /position ID/);
  }
});

test("notation", () => {
  const written = (id: string, dice: [number, number]) =>
    legalPlays(fromPositionId(id), ...dice).map((moves) => formatPlay(fromPositionId(id), moves, dice)).sort();
  assert.ok(written("4HPwATDgc/ABMA", [3, 1]).includes("8/5 6/5"));
  assert.ok(written("4HPwATDgc/ABMA", [6, 6]).includes("24/18(2) 13/7(2)"));
  assert.ok(written("4HPwATDgc/ABMA", [2, 2]).includes("13/11(2) 6/4(2)"));
  assert.deepEqual(written("wzgAAOBz8ABwAA", [6, 5]), ["bar/19"]);
  assert.deepEqual(written("ACAA+P8BEAAAAA", [3, 2]), ["13/11*/8", "13/8"]);
  assert.deepEqual(written("AwAAgAIAAAAAAA", [6, 1]), ["6/5/off", "6/off 5/4"].sort());
  assert.deepEqual(written("AwAAQAAAAAAAAA", [6, 2]), ["4/off"]);
});

test("SHA-256 equals the system's", () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 1000, 100000]) {
    const data = randomBytes(length);
    assert.equal(sha256Hex(data), createHash("sha256").update(data).digest("hex"));
  }
});
