// SPDX-License-Identifier: Apache-2.0
// A street of made-up houses: corners of every kind, the same ones each time, on 960 x 720 pixels.
function drawStreet(pen) {
  let seed = 7;
  const random = (low, high) => { seed = seed * 48271 % 2147483647; return low + (high - low) * seed / 2147483647; };
  const box = (fill, x, y, w, h) => { pen.fillStyle = fill; pen.fillRect(x, y, w, h); };
  const sky = pen.createLinearGradient(0, 0, 0, 560);
  sky.addColorStop(0, "#7fa6c9");
  sky.addColorStop(1, "#e8dcc8");
  pen.fillStyle = sky;
  pen.fillRect(0, 0, 960, 720);
  for (let x = -30; x < 960;) {
    const w = random(110, 190), top = random(150, 330), tone = random(0, 360), cell = random(30, 44);
    box(`hsl(${tone} 28% ${random(42, 66)}%)`, x, top, w, 600 - top);
    pen.fillStyle = `hsl(${tone + 160} 22% 27%)`;
    pen.beginPath();
    pen.moveTo(x - 8, top);
    pen.lineTo(x + w * random(.35, .65), top - random(40, 100));
    pen.lineTo(x + w + 8, top);
    pen.fill();
    for (let wy = top + 24; wy < 530; wy += cell * 1.5)
      for (let wx = x + 14; wx < x + w - cell; wx += cell * 1.25) {
        box("#f1ead9", wx - 3, wy - 3, cell * .8 + 6, cell + 6);
        box(random(0, 1) > .3 ? "#29323f" : "#f2c86b", wx, wy, cell * .8, cell);
        box("#f1ead9", wx + cell * .38, wy, 3, cell);
      }
    x += w + 3;
  }
  box("#5d5f63", 0, 600, 960, 120);
  for (let row = 0; row < 5; row++)
    for (let column = -1; column < 24; column++)
      box((row + column) % 2 ? "#77797d" : "#4b4d51", column * 44 + row * 9, 602 + row * 24, 43, 23);
}
