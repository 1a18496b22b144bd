// SPDX-License-Identifier: Apache-2.0
// The page at /. The other scripts of this folder stand before this one in the file that is served, which is the worker's
// too.

function page() {
  const $ = (id) => document.getElementById(id);
  const LETTERS = ["A", "B"];
  const THRESHOLDS = [0];
  for (const decade of [-4, -3, -2, -1])
    for (const m of [1, 1.5, 2, 3, 4, 5, 7]) THRESHOLDS.push(+(m * 10 ** decade).toPrecision(2));
  THRESHOLDS.push(1);
  const COUNTS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, -1];
  const MATCHED = 4096; // keypoints of a photo, the best ones
  const DEFAULTS = { threshold: THRESHOLDS.indexOf(0.005), radius: 4, count: COUNTS.indexOf(1024) };

  // What is shown: for each photo its file, the picture, the answer of the server, and the run in progress.
  const photos = [null, null];
  const running = [null, null];
  let matches = null, matcher = null;
  let selected = null; // {photo, index}
  let camera = { zoom: 1, x: 0, y: 0 };

  // ---- Words

  const number = new Intl.NumberFormat("en");
  const counted = (n, word, more = `${word}s`) => `${number.format(n)} ${n === 1 ? word : more}`;
  const keypointsOf = (photo) => counted(photo.answer.num_keypoints, "keypoint");
  const say = (text) => { $("status").textContent = text; };
  function complain(text) {
    $("alert").hidden = !text;
    $("alert-text").textContent = text;
  }

  // ---- The server

  class Refusal extends Error {}

  const pause = (ms, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
  });

  function reasonOf(status, text) {
    let detail;
    try { detail = JSON.parse(text).detail; } catch { detail = text.slice(0, 200); }
    if (Array.isArray(detail)) detail = detail.map((item) => `${item.loc.at(-1)}: ${item.msg}`).join("; ");
    if (status === 413) return "The file is larger than this server accepts.";
    const [, type, reason] = /^bad image: (\w+): (.*?)\.?$/s.exec(detail) ?? [];
    if (type === "DecompressionBombError") return "The picture has more pixels than this server accepts.";
    if (type) return `This file cannot be read as a picture (${reason}).`;
    return `The server answered ${status}: ${detail || "nothing more"}`;
  }

  const settings = () => `${new URLSearchParams({
    max_keypoints: COUNTS[$("count").value], keypoint_threshold: THRESHOLDS[$("threshold").value],
    nms_radius: $("radius").value,
  })}`;

  async function ask(file, descriptors, signal) {
    const used = settings();
    const key = sessionStorage.getItem("key");
    for (let attempt = 1; ; attempt++) {
      const start = performance.now();
      let answer, text;
      try {
        answer = await fetch(`predict_raw?${used}&return_descriptors=${descriptors}`, {
          method: "POST", body: file, signal, headers: key ? { authorization: `Bearer ${key}` } : {},
        });
        text = await answer.text();
      } catch (error) {
        if (signal.aborted) throw error;
        throw new Refusal("The server does not answer. It may have stopped, or refused the file for its size.");
      }
      if (answer.ok) return { text, answer: JSON.parse(text), trip: performance.now() - start, used };
      if (answer.status === 401) {
        if (key) $("key-why").textContent = "The server does not know this key.";
        $("key-form").hidden = false;
        $("key").focus();
        throw new Refusal("");
      }
      if (answer.status !== 503) throw new Refusal(reasonOf(answer.status, text));
      if (attempt > 5) throw new Refusal("The server is too busy. Try again in a while.");
      const seconds = Math.min(10, Number(answer.headers.get("retry-after")) || 1) * attempt;
      say(`The server is busy; trying again in ${counted(seconds, "second")}.`);
      $("readout").textContent = $("status").textContent;
      await pause(seconds * 1000, signal);
    }
  }

  function busy() {
    const any = running.some(Boolean) || matcher !== null;
    $("progress").hidden = !any;
    $("stage").setAttribute("aria-busy", any);
  }

  // The pixels as stored, which the server sees. null if the browser cannot show the picture.
  async function decode(file) {
    const bytes = withoutRotation(new Uint8Array(await file.arrayBuffer()));
    return createImageBitmap(new Blob([bytes], { type: file.type }), { imageOrientation: "none" }).catch(() => null);
  }

  async function detect(at, file, name, descriptors) {
    running[at]?.abort();
    const control = running[at] = new AbortController();
    busy();
    try {
      const known = photos[at]?.file === file;
      const picture = known ? photos[at].bitmap : decode(file);
      const [got, bitmap] = await Promise.all([ask(file, descriptors, control.signal), picture]);
      if (control.signal.aborted) return false;
      const size = got.answer.original_size;
      if (!known) photos[at]?.bitmap?.close();
      // A browser that turned the picture all the same would draw keypoints in wrong places.
      const fits = bitmap && bitmap.width === size.width && bitmap.height === size.height;
      photos[at] = { file, name, bitmap: fits ? bitmap : null, width: size.width, height: size.height, ...got };
      complain("");
      $("key-form").hidden = true;
      return true;
    } catch (error) {
      if (control.signal.aborted) return false;
      if (!(error instanceof Refusal)) throw error;
      if (error.message) complain(`${name}: ${error.message}`);
      return false;
    } finally {
      if (running[at] === control) running[at] = null;
      busy();
    }
  }

  const paired = () => photos[0] && photos[1];

  async function open(at, file) {
    if (!file) return;
    complain("");
    if (at === 1 && !photos[0]) at = 0;
    const name = file.name || "photo";
    say(`Detecting in ${name}.`);
    retry = () => open(at, file);
    if (!await detect(at, file, name, at === 1 || !!photos[1])) return;
    camera = { zoom: 1, x: 0, y: 0 };
    selected = null;
    await (photos[at].used === settings() ? finish(at) : again()); // a slider may have moved meanwhile
  }

  // After a slider moved.
  async function again() {
    retry = again;
    const both = !!paired();
    const done = await Promise.all(photos.map((photo, at) => photo && detect(at, photo.file, photo.name, both)));
    if (done.some(Boolean)) {
      selected = null;
      await finish(done[0] ? 0 : 1);
    }
  }

  let retry = null; // what to do once the key is there

  async function finish(at) {
    if (paired() && !photos[0].answer.descriptors) await detect(0, photos[0].file, photos[0].name, true);
    matches = null;
    showTiming(at);
    render();
    const found = photos.map((photo, i) => photo && `${keypointsOf(photo)} in ${LETTERS[i]}`);
    say(`${found.filter(Boolean).join(", ")}.`);
    if (paired()) match();
  }

  // ---- Matching

  function descriptorsOf(photo) {
    const [rows, columns] = photo.answer.descriptors.shape;
    const numbers = halvesOfNpz(bytesOfBase64(photo.answer.descriptors.data), rows * columns);
    return floatsOfHalves(numbers.subarray(0, MATCHED * columns));
  }

  function stopMatching() {
    matcher?.terminate();
    matcher = null;
  }

  function match() {
    stopMatching();
    if (!photos[0].answer.descriptors || !photos[1].answer.descriptors) return;
    matcher = new Worker("page.js");
    busy();
    const [a, b] = photos.map(descriptorsOf);
    matcher.onmessage = ({ data }) => {
      stopMatching();
      matches = data;
      busy();
      render();
      say(`${counted(shownMatches().length, "match", "matches")}.`);
    };
    matcher.onerror = () => {
      stopMatching();
      busy();
      complain("The browser could not match the photos.");
    };
    matcher.postMessage([a, b], [a.buffer, b.buffer]);
  }

  const shownMatches = () => (matches ?? []).filter((m) => m.score * 100 >= $("similarity").value);

  // ---- Colours

  const STOPS = [[79, 124, 255], [34, 195, 201], [126, 224, 74], [255, 210, 63], [255, 90, 60]];
  const COLOURS = Array.from({ length: 64 }, (_, i) => {
    const t = i / 63 * (STOPS.length - 1), low = Math.min(Math.floor(t), STOPS.length - 2);
    return `rgb(${STOPS[low].map((c, k) => Math.round(c + (STOPS[low + 1][k] - c) * (t - low)))})`;
  });
  const colour = (t) => COLOURS[Math.max(0, Math.min(63, Math.round(t * 63)))];

  // Scores spread over decades, so colours follow their logarithm.
  function scoreRange() {
    const scores = photos.filter((photo) => photo?.answer.num_keypoints).map((photo) => photo.answer.scores);
    if (!scores.length) return null;
    const low = Math.max(1e-6, Math.min(...scores.map((s) => s.at(-1))));
    const high = Math.max(low, ...scores.map((s) => s[0]));
    const span = Math.log(high / low) || 1;
    return { low, high, of: (score) => high === low ? 1 : Math.log(Math.max(score, low) / low) / span };
  }

  // ---- Drawing

  const canvas = $("canvas"), context = canvas.getContext("2d");
  const GAP = 8;
  let places = []; // of each photo: {photo, at, x, y, scale}, in CSS pixels at zoom 1

  function arrange(width, height) {
    const shown = photos.map((photo, at) => ({ photo, at })).filter(({ photo }) => photo);
    if (!shown.length) return [];
    const fit = ({ photo }, w, h) => Math.min(w / photo.width, h / photo.height);
    const n = shown.length;
    const wide = [(width - GAP * (n - 1)) / n, height], tall = [width, (height - GAP * (n - 1)) / n];
    const area = (cell) => shown.reduce((sum, s) => sum + fit(s, ...cell) ** 2 * s.photo.width * s.photo.height, 0);
    const beside = area(wide) >= area(tall);
    const cell = beside ? wide : tall;
    const scales = shown.map((s) => fit(s, ...cell));
    const along = shown.map((s, i) => scales[i] * (beside ? s.photo.width : s.photo.height));
    let at = ((beside ? width : height) - along.reduce((x, y) => x + y) - GAP * (n - 1)) / 2;
    return shown.map((s, i) => {
      const across = ((beside ? height : width) - scales[i] * (beside ? s.photo.height : s.photo.width)) / 2;
      const place = { ...s, scale: scales[i], x: beside ? at : across, y: beside ? across : at };
      at += along[i] + GAP;
      return place;
    });
  }

  // The middle of the pixel of the network's frame that a keypoint is, on the canvas.
  function position(place, index) {
    const { keypoints, scale } = place.photo.answer, [x, y] = keypoints[index];
    return [
      (place.x + (x + scale.x / 2) * place.scale) * camera.zoom + camera.x,
      (place.y + (y + scale.y / 2) * place.scale) * camera.zoom + camera.y,
    ];
  }

  function drawPhoto({ photo, x, y, scale }, ratio) {
    const s = scale * camera.zoom;
    const left = x * camera.zoom + camera.x, top = y * camera.zoom + camera.y;
    context.setTransform(ratio * s, 0, 0, ratio * s, ratio * left, ratio * top);
    context.imageSmoothingEnabled = ratio * s < 3;
    context.imageSmoothingQuality = "high";
    if (photo.bitmap) {
      context.drawImage(photo.bitmap, 0, 0);
    } else {
      context.fillStyle = "#2a2f38";
      context.fillRect(0, 0, photo.width, photo.height);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  function disc(x, y, radius, fill) {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = fill;
    context.fill();
  }

  // `matched` gives keypoints the colour of their match; those without one step back.
  function drawKeypoints(place, range, matched) {
    const { scores, num_keypoints: count } = place.photo.answer;
    const fit = Math.min(1, Math.max(.5, place.scale * place.photo.width / 800)); // small photos get small points
    const radius = Math.min(6, (count > 3000 ? 1.6 : 2.4) * Math.sqrt(camera.zoom)) * fit;
    for (let i = count - 1; i >= 0; i--) { // the best on top
      const [x, y] = position(place, i);
      if (x < -9 || y < -9 || x > canvas.clientWidth + 9 || y > canvas.clientHeight + 9) continue;
      const fill = matched ? matched.get(i) ?? "#aab2bf" : colour(range.of(scores[i]));
      if (count > 20000) {
        context.fillStyle = fill;
        context.fillRect(x - 1, y - 1, 2, 2);
        continue;
      }
      context.globalAlpha = !matched || matched.has(i) ? 1 : .3;
      disc(x, y, radius + 1.1 * fit, "rgba(0,0,0,.62)");
      disc(x, y, radius, fill);
    }
  }

  function colourOf(m) {
    const from = $("similarity").value / 100;
    return colour((m.score - from) / (1 - from || 1));
  }

  function drawMatches() {
    const partner = selected && matches.find((m) => m[selected.photo ? "b" : "a"] === selected.index);
    for (const m of shownMatches()) {
      const [x0, y0] = position(places[0], m.a), [x1, y1] = position(places[1], m.b);
      const chosen = m === partner;
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.globalAlpha = chosen ? 1 : partner ? .15 : .6;
      context.lineWidth = chosen ? 3 : 1.2;
      context.strokeStyle = colourOf(m);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  function drawSelected() {
    const place = places.find((p) => p.at === selected.photo);
    const [x, y] = position(place, selected.index);
    context.lineWidth = 4;
    context.strokeStyle = "#000";
    context.beginPath();
    context.arc(x, y, 10, 0, 2 * Math.PI);
    context.stroke();
    context.lineWidth = 2;
    context.strokeStyle = "#fff";
    context.stroke();
  }

  let drawing = 0;
  const draw = () => { drawing ||= requestAnimationFrame(() => { drawing = 0; paint(); }); };

  function paint() {
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    places = arrange(width, height);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (const place of places) drawPhoto(place, ratio);
    const range = scoreRange();
    if (places.length === 2 && matches) drawMatches();
    if (range)
      for (const place of places) {
        const coloured = (m) => [place.at ? m.b : m.a, colourOf(m)];
        drawKeypoints(place, range, matches && new Map(shownMatches().map(coloured)));
      }
    context.globalAlpha = 1;
    if (selected) drawSelected();
  }

  // ---- Panels

  const showNumber = (value) => value >= .1 ? value.toFixed(2) : value.toPrecision(2);

  function showLegend() {
    const range = scoreRange(), matching = matches !== null;
    $("legend").hidden = !range && !matching;
    if ($("legend").hidden) return;
    $("legend-name").textContent = matching ? "Similarity" : "Score";
    $("legend-low").textContent = matching ? $("similarity-out").textContent : showNumber(range.low);
    $("legend-high").textContent = matching ? "1.00" : showNumber(range.high);
  }

  function showReadout() {
    const out = $("readout");
    if (selected) {
      const { answer } = photos[selected.photo], [x, y] = answer.keypoints[selected.index];
      const m = matches?.find((each) => each[selected.photo ? "b" : "a"] === selected.index);
      const parts = [`#${selected.index + 1}`, `x ${x.toFixed(1)}`, `y ${y.toFixed(1)}`];
      parts.push(`score ${answer.scores[selected.index].toFixed(4)}`);
      if (m) parts.push(`similarity ${m.score.toFixed(3)}`);
      out.textContent = (photos[1] ? `${LETTERS[selected.photo]} ` : "") + parts.join("   ");
    } else {
      const hidden = photos.find((photo) => photo && !photo.bitmap);
      out.textContent = hidden ? `${hidden.name}: this browser cannot show the picture, only its keypoints.`
        : photos.filter(Boolean).map(keypointsOf).join(" and ");
    }
  }

  function showTiming(at) {
    const { answer: { timing_ms: ms }, trip, name } = photos[at];
    const parts = [ms.preprocess, ms.device_forward, ms.postprocess];
    $("time-of").textContent = name;
    $("time-total").textContent = ms.total.toFixed(1);
    parts.forEach((part, i) => {
      $(`time-${i}`).textContent = `${part.toFixed(2)} ms`;
      $(`bar-${i}`).style.flexGrow = Math.max(part, .001);
    });
    $("time-3").textContent = `${trip.toFixed(0)} ms`;
    $("time-card").hidden = false;
  }

  function button(text, action, label) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    if (label) made.setAttribute("aria-label", label);
    made.addEventListener("click", action);
    return made;
  }

  function drawThumb(thumb, photo) {
    const pen = thumb.getContext("2d"), s = Math.max(thumb.width / photo.width, thumb.height / photo.height);
    const width = s * photo.width, height = s * photo.height;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(photo.bitmap, (thumb.width - width) / 2, (thumb.height - height) / 2, width, height);
  }

  function showSlot(at) {
    const slot = $(`slot-${at}`), photo = photos[at], letter = LETTERS[at];
    if (slot.childNodes.length && slot.shown === photo && slot.first === photos[0]) return;
    const focused = slot.contains(document.activeElement) ? document.activeElement.textContent : null;
    slot.shown = photo;
    slot.first = photos[0];
    slot.replaceChildren();
    slot.classList.toggle("vacant", !photo);
    if (photo) {
      slot.append($("slot-full").content.cloneNode(true));
      if (photo.bitmap) drawThumb(slot.querySelector("canvas"), photo);
      slot.querySelector("b").textContent = `${letter}: ${photo.name}`;
      slot.querySelector("b").title = photo.name;
      slot.querySelector("span").textContent = `${photo.width} × ${photo.height} · ${keypointsOf(photo)}`;
      slot.querySelector(".actions").append(
        button("Replace", () => choose(at), `Replace photo ${letter}`),
        button("Remove", () => remove(at), `Remove photo ${letter}`),
        button("JSON", () => saveJson(at), `Download the JSON of photo ${letter}`),
        button("NPZ", () => saveNpz(at), `Download the NPZ of photo ${letter}`));
      for (const each of slot.querySelectorAll("button")) each.classList.add("link");
    } else if (at === 1) {
      const text = document.createElement("p");
      text.textContent = "Match with a second photo, or with a turned copy of the first.";
      slot.append(text, button("Second photo", () => choose(1)), button("Turned copy", turnedCopy));
    }
    const buttons = [...slot.querySelectorAll("button")];
    if (focused) (buttons.find((each) => each.textContent === focused) ?? buttons[0])?.focus();
  }

  function render() {
    const any = photos.some(Boolean);
    $("empty").hidden = any;
    $("photos-card").hidden = !any;
    $("view").hidden = $("footer").hidden = !any;
    $("time-card").hidden &&= !any;
    $("match-card").hidden = !paired();
    $("match-count").textContent = matches ? number.format(shownMatches().length) : "–";
    $("match-note").textContent = matches ? `of ${counted(matches.length, "mutual neighbour")}` : "matching …";
    $("view").classList.toggle("zoomed", camera.zoom > 1);
    if (any) {
      // On a phone the picture is as high as it needs.
      const high = photos.reduce((sum, photo) => sum + (photo ? photo.height / photo.width : 0), 0);
      $("view").style.aspectRatio = `${1 / Math.max(.3, high)}`;
    }
    showSlot(0);
    showSlot(1);
    showLegend();
    showReadout();
    draw();
  }

  function remove(at) {
    for (const run of running) run?.abort();
    stopMatching();
    photos[at].bitmap?.close();
    photos[at] = null;
    if (at === 0) { photos[0] = photos[1]; photos[1] = null; }
    matches = selected = null;
    camera = { zoom: 1, x: 0, y: 0 };
    if (!photos[0]) $("time-card").hidden = true;
    render();
    busy();
    say("Photo removed.");
    (photos[0] ? $("slot-1").querySelector("button") : $("pick")).focus();
  }

  // ---- Downloads

  function save(blob, photo, ending) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = photo.name.replace(/\.[^.]*$/, "") + ending;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function complete(at) {
    const { file, name } = photos[at];
    if (!photos[at].answer.descriptors && !await detect(at, file, name, true)) return null;
    return photos[at];
  }

  async function saveJson(at) {
    const photo = await complete(at);
    if (photo) save(new Blob([photo.text], { type: "application/json" }), photo, ".json");
  }

  async function saveNpz(at) {
    const photo = await complete(at);
    if (!photo) return;
    const { answer } = photo, n = answer.num_keypoints;
    save(npzOf([
      ["keypoints", "<f4", [n, 2], Float32Array.from(answer.keypoints.flat())],
      ["scores", "<f4", [n], Float32Array.from(answer.scores)],
      ["descriptors", "<f2", [n, DESCRIPTOR], halvesOfNpz(bytesOfBase64(answer.descriptors.data), n * DESCRIPTOR)],
      ["image_size", "<i8", [2], BigInt64Array.of(BigInt(photo.width), BigInt(photo.height))],
    ]), photo, ".npz");
  }

  // ---- Where photos come from

  let choosing = 0;
  function choose(at) {
    choosing = at;
    $("file").multiple = at === 0;
    $("file").value = "";
    $("file").click();
  }

  async function openAll(at, files) {
    await open(at, files[0]);
    if (files[1] && at === 0 && photos[0]) await open(1, files[1]);
  }

  async function toFile(drawn, name) {
    const blob = await new Promise((resolve) => drawn.toBlob(resolve, "image/png"));
    return new File([blob], name, { type: "image/png" });
  }

  function makeCanvas(width, height) {
    const made = document.createElement("canvas");
    made.width = width;
    made.height = height;
    return [made, made.getContext("2d")];
  }

  async function turnedCopy() {
    const { bitmap, width, height, name } = photos[0];
    if (!bitmap) return complain("This browser cannot show the photo, so it cannot turn it.");
    const shrink = Math.min(1, 1600 / Math.max(width, height));
    const [drawn, pen] = makeCanvas(Math.round(width * shrink), Math.round(height * shrink));
    pen.imageSmoothingQuality = "high";
    pen.fillStyle = "#808080";
    pen.fillRect(0, 0, drawn.width, drawn.height);
    pen.translate(drawn.width / 2, drawn.height / 2);
    pen.rotate(Math.PI / 12);
    pen.scale(.85 * shrink, .85 * shrink);
    pen.drawImage(bitmap, -width / 2, -height / 2);
    await open(1, await toFile(drawn, `${name.replace(/\.[^.]*$/, "")}-turned.png`));
  }

  async function sample() {
    const [drawn, pen] = makeCanvas(960, 720);
    drawStreet(pen);
    await open(0, await toFile(drawn, "sample.png"));
  }

  async function openCamera() {
    let stream;
    try {
      const video = { facingMode: "environment", width: { ideal: 1280 } };
      stream = await navigator.mediaDevices.getUserMedia({ video });
    } catch {
      return complain("The camera cannot be used: there is none, or it was not allowed.");
    }
    $("video").srcObject = stream;
    $("camera-dialog").showModal();
    $("video").play();
  }

  function closeCamera() {
    for (const track of $("video").srcObject?.getTracks() ?? []) track.stop();
    $("video").srcObject = null;
  }

  async function shoot() {
    const video = $("video");
    if (!video.videoWidth) return;
    const [drawn, pen] = makeCanvas(video.videoWidth, video.videoHeight);
    pen.drawImage(video, 0, 0);
    $("camera-dialog").close();
    await open(photos[0] ? 1 : 0, await toFile(drawn, "camera.png"));
  }

  // ---- Zoom and choice of a keypoint

  function zoomBy(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const zoom = Math.max(1, Math.min(40, camera.zoom * factor)), f = zoom / camera.zoom;
    moveTo(zoom, x - (x - camera.x) * f, y - (y - camera.y) * f);
  }

  function moveTo(zoom, x, y) {
    const inside = (v, size) => Math.min(0, Math.max(size * (1 - zoom), v));
    camera = { zoom, x: inside(x, canvas.clientWidth), y: inside(y, canvas.clientHeight) };
    $("view").classList.toggle("zoomed", zoom > 1);
    draw();
  }

  function nearest(x, y) {
    let best = null, least = 14 ** 2;
    for (const place of places)
      for (let i = 0; i < place.photo.answer.num_keypoints; i++) {
        const [px, py] = position(place, i), distance = (px - x) ** 2 + (py - y) ** 2;
        if (distance < least) { least = distance; best = { photo: place.at, index: i }; }
      }
    return best;
  }

  function select(next) {
    if (next?.photo === selected?.photo && next?.index === selected?.index) return;
    selected = next;
    showReadout();
    draw();
  }

  // The next keypoint by score, first of one photo, then of the other.
  function stepTo(step) {
    const counts = photos.map((photo) => photo?.answer.num_keypoints ?? 0), total = counts[0] + counts[1];
    if (!total) return;
    const at = selected ? (selected.photo ? counts[0] : 0) + selected.index + step : 0, next = (at + total) % total;
    select(next < counts[0] ? { photo: 0, index: next } : { photo: 1, index: next - counts[0] });
    say($("readout").textContent);
  }

  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event);
    if (camera.zoom > 1) canvas.setPointerCapture(event.pointerId);
    if (event.pointerType !== "mouse") select(nearest(event.offsetX, event.offsetY));
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") select(nearest(event.offsetX, event.offsetY));
      return;
    }
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const gap = (p) => Math.hypot(p.offsetX - other.offsetX, p.offsetY - other.offsetY) || 1;
      zoomBy(gap(event) / gap(before), (event.offsetX + other.offsetX) / 2, (event.offsetY + other.offsetY) / 2);
    } else if (camera.zoom > 1) {
      moveTo(camera.zoom, camera.x + event.offsetX - before.offsetX, camera.y + event.offsetY - before.offsetY);
    }
    pointers.set(event.pointerId, event);
  });
  for (const kind of ["pointerup", "pointercancel", "pointerleave"])
    canvas.addEventListener(kind, (event) => {
      pointers.delete(event.pointerId);
      if (kind === "pointerleave" && event.pointerType === "mouse") select(null);
    });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomBy(1.0018 ** -Math.max(-300, Math.min(300, event.deltaY)), event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoomBy(camera.zoom > 1 ? 0 : 3, event.offsetX, event.offsetY));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      stepTo(step);
    } else if (event.key === "+" || event.key === "=") zoomBy(1.5);
    else if (event.key === "-") zoomBy(1 / 1.5);
    else if (event.key === "0") zoomBy(0);
    else if (event.key === "Escape") select(null);
    else return;
    event.preventDefault();
  });
  $("zoom-in").addEventListener("click", () => zoomBy(1.5));
  $("zoom-out").addEventListener("click", () => zoomBy(1 / 1.5));
  $("zoom-fit").addEventListener("click", () => zoomBy(0));

  // ---- Controls

  function showSliders() {
    const count = COUNTS[$("count").value], radius = $("radius").value;
    const texts = {
      threshold: String(THRESHOLDS[$("threshold").value]), radius: radius === "0" ? "off" : `${radius} px`,
      count: count < 0 ? "all" : number.format(count),
      similarity: ($("similarity").value / 100).toFixed(2),
    };
    for (const [id, text] of Object.entries(texts)) {
      $(`${id}-out`).textContent = text;
      $(id).setAttribute("aria-valuetext", text);
    }
  }

  let waiting = 0;
  function moved() {
    showSliders();
    clearTimeout(waiting);
    waiting = setTimeout(again, 150);
  }

  function resetSliders() {
    for (const [id, value] of Object.entries(DEFAULTS)) $(id).value = value;
    showSliders();
  }

  $("threshold").max = THRESHOLDS.length - 1;
  $("count").max = COUNTS.length - 1;
  for (const id of Object.keys(DEFAULTS)) $(id).addEventListener("input", moved);
  $("similarity").addEventListener("input", () => { showSliders(); render(); });
  $("reset").addEventListener("click", () => { resetSliders(); moved(); });
  $("pick").addEventListener("click", () => choose(0));
  $("sample").addEventListener("click", sample);
  $("file").addEventListener("change", () => openAll(choosing, [...$("file").files]));
  $("alert-close").addEventListener("click", () => complain(""));
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("key", $("key").value.trim());
    retry?.();
  });
  $("camera").hidden = !navigator.mediaDevices?.getUserMedia; // browsers allow it on https and localhost only
  $("camera").addEventListener("click", openCamera);
  $("shoot").addEventListener("click", shoot);
  $("camera-close").addEventListener("click", () => $("camera-dialog").close());
  $("camera-dialog").addEventListener("close", closeCamera);

  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((each) => each.type.startsWith("image/"));
    if (!file) return;
    event.preventDefault();
    open(photos[0] ? 1 : 0, file);
  });

  const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
  const dropsSecond = (event) => {
    const stage = $("stage").getBoundingClientRect();
    return photos[0] && event.clientX > stage.left + stage.width / 2;
  };
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    $("drop").hidden = false;
    $("drop-second").hidden = !photos[0];
    $("drop-first").classList.toggle("over", !dropsSecond(event));
    $("drop-second").classList.toggle("over", !!dropsSecond(event));
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").hidden = true; });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    $("drop").hidden = true;
    openAll(dropsSecond(event) ? 1 : 0, [...event.dataTransfer.files]);
  });

  new ResizeObserver(() => moveTo(camera.zoom, camera.x, camera.y)).observe($("view"));
  resetSliders();
  render();
}

if (typeof document === "undefined") onmessage = ({ data: [a, b] }) => postMessage(matchDescriptors(a, b));
else page();
