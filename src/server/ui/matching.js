// SPDX-License-Identifier: Apache-2.0
"use strict";

// Matching of descriptors, in a worker of the page.
const DESCRIPTOR = 256;

// Mutual nearest neighbours by dot product. Four rows of `a` at a time, so that a row of `b` is read once for them.
function matchDescriptors(a, b) {
  const countA = a.length / DESCRIPTOR, countB = b.length / DESCRIPTOR;
  const bestA = new Int32Array(countA).fill(-1), scoreA = new Float64Array(countA).fill(-2);
  const bestB = new Int32Array(countB).fill(-1), scoreB = new Float64Array(countB).fill(-2);
  const take = (i, j, score) => {
    if (score > scoreA[i]) { scoreA[i] = score; bestA[i] = j; }
    if (score > scoreB[j]) { scoreB[j] = score; bestB[j] = i; }
  };
  for (let i = 0; i < countA; i += 4) {
    const last = countA - 1;
    const r0 = i * DESCRIPTOR, r1 = Math.min(i + 1, last) * DESCRIPTOR;
    const r2 = Math.min(i + 2, last) * DESCRIPTOR, r3 = Math.min(i + 3, last) * DESCRIPTOR;
    for (let j = 0; j < countB; j++) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      for (let k = 0, at = j * DESCRIPTOR; k < DESCRIPTOR; k++, at++) {
        const v = b[at];
        s0 += a[r0 + k] * v;
        s1 += a[r1 + k] * v;
        s2 += a[r2 + k] * v;
        s3 += a[r3 + k] * v;
      }
      take(i, j, s0);
      if (i + 1 < countA) take(i + 1, j, s1);
      if (i + 2 < countA) take(i + 2, j, s2);
      if (i + 3 < countA) take(i + 3, j, s3);
    }
  }
  const matches = [];
  for (let i = 0; i < countA; i++)
    if (bestA[i] >= 0 && bestB[bestA[i]] === i) matches.push({ a: i, b: bestA[i], score: scoreA[i] });
  return matches.sort((p, q) => p.score - q.score);
}
