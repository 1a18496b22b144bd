// SPDX-License-Identifier: Apache-2.0
// Browsers turn pictures as their EXIF says, the server does not. So the orientation is set to 1 in a copy of the file,
// wherever a format keeps its block of EXIF: the block begins with a header of TIFF.
function withoutRotation(bytes) {
  const view = new DataView(bytes.buffer);
  for (let at = 0; at + 10 < bytes.length; at++) {
    const little = bytes[at] === 0x49 && bytes[at + 1] === 0x49;
    if (!little && (bytes[at] !== 0x4d || bytes[at + 1] !== 0x4d)) continue;
    if (view.getUint16(at + 2, little) !== 42 || view.getUint32(at + 4, little) !== 8) continue;
    const count = Math.min(view.getUint16(at + 8, little), 256);
    for (let entry = at + 10; entry < at + 10 + 12 * count && entry + 12 <= bytes.length; entry += 12)
      if (view.getUint16(entry, little) === 0x112 && view.getUint16(entry + 2, little) === 3)
        view.setUint16(entry + 8, 1, little);
  }
  return bytes;
}
