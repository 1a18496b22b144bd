// SPDX-License-Identifier: Apache-2.0
// NumPy files: the descriptors of an answer, and an NPZ to download.

const halfTable = () => {
  const table = new Float32Array(65536);
  for (let h = 0; h < 65536; h++) {
    const exponent = h >> 10 & 31, fraction = h & 1023;
    const size = exponent === 0 ? fraction * 2 ** -24
      : exponent === 31 ? (fraction ? NaN : Infinity) : (1024 + fraction) * 2 ** (exponent - 25);
    table[h] = h & 0x8000 ? -size : size;
  }
  return table;
};
let halves = null;

function bytesOfBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// The float16 numbers of the one array in an NPZ: a local header of zip, a header of NPY, the numbers.
function halvesOfNpz(bytes, count) {
  const view = new DataView(bytes.buffer);
  const npy = 30 + view.getUint16(26, true) + view.getUint16(28, true);
  const start = npy + 10 + view.getUint16(npy + 8, true);
  return new Uint16Array(bytes.buffer.slice(start, start + 2 * count));
}

function floatsOfHalves(numbers) {
  halves ??= halfTable();
  const floats = new Float32Array(numbers.length);
  for (let i = 0; i < floats.length; i++) floats[i] = halves[numbers[i]];
  return floats;
}

function crc32(bytes) {
  const table = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? n >>> 1 ^ 0xedb88320 : n >>> 1;
    return n;
  });
  let crc = -1;
  for (const byte of bytes) crc = crc >>> 8 ^ table[(crc ^ byte) & 255];
  return ~crc >>> 0;
}

function npyOf(type, shape, data) {
  const lengths = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  let header = `{'descr': '${type}', 'fortran_order': False, 'shape': (${lengths}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + "\n";
  const out = new Uint8Array(10 + header.length + data.byteLength);
  out.set([0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8]);
  out.set(new TextEncoder().encode(header), 10);
  out.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), 10 + header.length);
  return out;
}

// An NPZ as numpy.savez writes it: a zip of stored NPY files. Arrays: [name, type, shape, typed array].
function npzOf(arrays) {
  const parts = [], directory = [];
  let offset = 0;
  const record = (size, numbers) => {
    const bytes = new Uint8Array(size), view = new DataView(bytes.buffer);
    for (const [at, width, value] of numbers) view[width === 2 ? "setUint16" : "setUint32"](at, value, true);
    return bytes;
  };
  for (const [name, type, shape, data] of arrays) {
    const file = npyOf(type, shape, data), title = new TextEncoder().encode(name + ".npy");
    const crc = crc32(file), size = file.length;
    parts.push(record(30, [[0, 4, 0x04034b50], [4, 2, 20], [12, 2, 0x21], [14, 4, crc], [18, 4, size], [22, 4, size],
      [26, 2, title.length]]), title, file);
    directory.push(record(46, [[0, 4, 0x02014b50], [4, 2, 20], [6, 2, 20], [14, 2, 0x21], [16, 4, crc], [20, 4, size],
      [24, 4, size], [28, 2, title.length], [42, 4, offset]]), title);
    offset += 30 + title.length + size;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = record(22, [[0, 4, 0x06054b50], [8, 2, arrays.length], [10, 2, arrays.length], [12, 4, size],
    [16, 4, offset]]);
  return new Blob([...parts, ...directory, end], { type: "application/octet-stream" });
}
