/** SHA-256 (FIPS 180-4), since the browser's own is missing from pages served without TLS. */
const K = new Uint32Array(64);
const START = new Uint32Array(8);

// The first 32 bits of the fractional parts of the cube and square roots of the first primes.
for (let n = 2, found = 0; found < 64; n++) {
  let prime = true;
  for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
  if (!prime) continue;
  const fraction = (x: number) => Math.floor((x - Math.floor(x)) * 2 ** 32);
  K[found] = fraction(Math.cbrt(n));
  if (found < 8) START[found] = fraction(Math.sqrt(n));
  found++;
}

/** The SHA-256 of `data` as 32 bytes. */
export function sha256(data: Uint8Array): Uint8Array {
  const length = data.length;
  const padded = new Uint8Array(((length + 9 + 63) >> 6) << 6);
  padded.set(data);
  padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(padded.length - 4, length << 3);
  const state = START.slice();
  const w = new Uint32Array(64);
  const turn = (x: number, n: number) => (x >>> n) | (x << (32 - n));
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15];
      const y = w[i - 2];
      const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
      const s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((x, i) => (state[i] += x));
  }
  const out = new Uint8Array(32);
  const result = new DataView(out.buffer);
  state.forEach((x, i) => result.setUint32(4 * i, x));
  return out;
}

/** The SHA-256 of `data` as 64 hex digits. */
export function sha256Hex(data: Uint8Array): string {
  return Array.from(sha256(data), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
