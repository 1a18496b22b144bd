# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium. Needs the packages of requirements-browser.txt and a Chromium; skipped without.

LENSING_CHROMIUM names the program when it is not in the PATH.
"""
import base64
import io
import json
import os
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from running import encoded

MISSING = "SKIP: no playwright; see tests/server/requirements-browser.txt"
playwright = pytest.importorskip("playwright.sync_api", reason=MISSING)
expect = playwright.expect

NAMES = ("chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
BEST = (255, 90, 60)  # colour of the highest score


@pytest.fixture(scope="module")
def browser():
    program = os.environ.get("LENSING_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("SKIP: no Chromium; install it or set LENSING_CHROMIUM")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=program, args=options)
        yield running
        running.close()


@pytest.fixture
def visit(browser):
    """visit(server, ...) opens the page. No script may fail, and no request may go elsewhere."""
    contexts, problems = [], []

    def open_page(server, viewport=DESKTOP, **options):
        contexts.append(browser.new_context(viewport=viewport, **options))
        page = contexts[-1].new_page()
        home = f"http://127.0.0.1:{server.port}/"
        page.set_default_timeout(60000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda m: problems.append(m.text) if "Security Policy" in m.text else None)
        page.on("request", lambda r: None if r.url.startswith((home, "data:", "blob:")) else problems.append(r.url))
        page.goto(home)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture(scope="module")
def scenes(root):
    return [root / "examples" / f"scene_{n}.jpg" for n in (1, 2)]


def choose(page, files, button="Choose a photo"):
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name=button, exact=True).click()
    chooser.value.set_files(files)


def detected(server, path, **parameters):
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return server.post(f"/predict_raw?{query}", path.read_bytes()).json


def counted(number, word="keypoint"):
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def photo_on_canvas(page, size):
    """A screenshot of the canvas, and how far and how much larger the one photo is on it."""
    canvas = page.locator("#canvas")
    shot = Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")
    scale = min(shot.width / size["width"], shot.height / size["height"])
    return shot, ((shot.width - scale * size["width"]) / 2, (shot.height - scale * size["height"]) / 2), scale


def pixel_of(page, size, x, y):
    shot, (left, top), scale = photo_on_canvas(page, size)
    return shot.getpixel((int(left + x * scale), int(top + y * scale)))


def test_detects(server, visit, scenes):
    page = visit(server)
    choose(page, scenes[0])
    answer = detected(server, scenes[0])
    assert answer["num_keypoints"] > 16
    expect(page.locator("#readout")).to_have_text(counted(answer["num_keypoints"]))
    expect(page.locator("#slot-0")).to_contain_text(scenes[0].name)
    expect(page.locator("#legend")).to_be_visible()
    expect(page.locator("#time-total")).to_have_text(re.compile(r"^\d+\.\d$"))
    expect(page.get_by_role("status")).to_have_text(f"{counted(answer['num_keypoints'])} in A.")


def test_draws_keypoints_where_they_are(server, visit, scenes):
    page = visit(server)
    choose(page, scenes[0])
    page.locator("#count").press("Home")
    expect(page.locator("#readout")).to_have_text("16 keypoints")
    answer = detected(server, scenes[0], max_keypoints=16)
    x, y = answer["keypoints"][0]
    size, scale = answer["original_size"], answer["scale"]
    pixel = pixel_of(page, size, x + scale["x"] / 2, y + scale["y"] / 2)
    assert max(abs(a - b) for a, b in zip(pixel, BEST)) < 12, pixel


def test_sliders_detect_again(server, visit, scenes):
    page = visit(server)
    choose(page, scenes[0])
    expect(page.locator("#readout")).to_contain_text("keypoints")
    page.locator("#radius").press("End")
    few = detected(server, scenes[0], nms_radius=32)["num_keypoints"]
    expect(page.locator("#radius-out")).to_have_text("32 px")
    expect(page.locator("#readout")).to_have_text(counted(few))
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#readout")).to_have_text(counted(detected(server, scenes[0])["num_keypoints"]))
    page.locator("#threshold").press("End")
    expect(page.locator("#readout")).to_have_text("0 keypoints")
    expect(page.locator("#legend")).to_be_hidden()


def test_matches(server, visit, scenes):
    page = visit(server)
    choose(page, scenes[0])
    choose(page, scenes[1], "Second photo")
    rows = []
    for scene in scenes:
        data = base64.b64decode(detected(server, scene)["descriptors"]["data"])
        rows.append(np.load(io.BytesIO(data))["descriptors"].astype(np.float64))
    similarity = rows[0] @ rows[1].T
    best = similarity.argmax(axis=1)
    mutual = similarity.argmax(axis=0)[best] == np.arange(len(best))
    scores = similarity.max(axis=1)[mutual]
    expect(page.locator("#match-note")).to_have_text(f"of {counted(len(scores), 'mutual neighbour')}")
    assert len(scores) > 10
    expect(page.locator("#match-count")).to_have_text(f"{np.count_nonzero(scores >= 0.7):,}")
    page.locator("#similarity").press("End")
    expect(page.locator("#match-count")).to_have_text(f"{np.count_nonzero(scores >= 1):,}")
    page.get_by_role("button", name="Remove photo B").click()
    expect(page.locator("#match-card")).to_be_hidden()


def test_turned_copy(server, visit, scenes):
    page = visit(server)
    choose(page, scenes[0])
    page.get_by_role("button", name="Turned copy").click()
    expect(page.locator("#match-note")).to_contain_text("of ")
    expect(page.locator("#slot-1")).to_contain_text("scene_1-turned.png")


def test_broken_file(server, visit, scenes, tmp_path):
    page = visit(server)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(scenes[0].read_bytes()[:2000])
    choose(page, broken)
    expect(page.get_by_role("alert")).to_contain_text("broken.jpg: This file cannot be read as a picture")
    expect(page.locator("#empty")).to_be_visible()
    choose(page, scenes[0])
    expect(page.get_by_role("alert")).to_be_hidden()
    choose(page, broken, "Replace photo A")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("#slot-0")).to_contain_text(scenes[0].name)


def test_busy_server_is_asked_again(server, visit, scenes):
    page = visit(server)
    answers = iter([503, 503])

    def refuse(route):
        status = next(answers, None)
        if status is None:
            route.continue_()
        else:
            route.fulfill(status=status, headers={"Retry-After": "1"}, json={"detail": "the server is busy"})

    page.route("**/predict_raw*", refuse)
    choose(page, scenes[0])
    expect(page.get_by_role("status")).to_have_text("The server is busy; trying again in 1 second.")
    expect(page.locator("#readout")).to_contain_text("keypoints", timeout=30000)
    assert next(answers, None) is None


def test_server_that_is_gone(server, visit, scenes):
    page = visit(server)
    page.route("**/predict_raw*", lambda route: route.abort())
    choose(page, scenes[0])
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")


def test_api_key(start, visit, scenes, tmp_path):
    file = tmp_path / "key"
    file.write_text("open sesame\n")
    page = visit(start("--api-key-file", file))
    choose(page, scenes[0])
    expect(page.get_by_label("API key")).to_be_focused()
    page.get_by_label("API key").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#key-why")).to_have_text("The server does not know this key.")
    page.get_by_label("API key").fill("open sesame")
    page.keyboard.press("Enter")
    expect(page.locator("#readout")).to_contain_text("keypoints")
    expect(page.locator("#key-form")).to_be_hidden()


def test_downloads(server, visit, scenes):
    page = visit(server)
    choose(page, scenes[0])
    expected = detected(server, scenes[0])
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the JSON of photo A").click()
    assert download.value.suggested_filename == "scene_1.json"
    answer = json.loads(download.value.path().read_text())
    assert {**answer, "timing_ms": 0} == {**expected, "timing_ms": 0}
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the NPZ of photo A").click()
    assert download.value.suggested_filename == "scene_1.npz"
    arrays = np.load(download.value.path())
    assert set(arrays.files) == {"keypoints", "scores", "descriptors", "image_size"}
    np.testing.assert_array_equal(arrays["keypoints"], np.array(expected["keypoints"], np.float32))
    np.testing.assert_array_equal(arrays["scores"], np.array(expected["scores"], np.float32))
    assert arrays["descriptors"].dtype == np.float16
    norms = np.linalg.norm(arrays["descriptors"].astype(np.float64), axis=1)
    np.testing.assert_allclose(norms, 1, atol=1e-3)
    size = expected["original_size"]
    assert arrays["image_size"].tolist() == [size["width"], size["height"]]


@pytest.mark.parametrize("kind, orientation", [("JPEG", 6), ("JPEG", 3), ("PNG", 3), ("WEBP", 8)])
def test_exif_rotation_is_ignored(server, visit, tmp_path, kind, orientation):
    """The server works on the pixels as stored, so the page has to show these."""
    picture = Image.new("RGB", (300, 200), "blue")
    picture.paste("red", (0, 0, 150, 200))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"turned.{kind.lower()}"
    path.write_bytes(encoded(picture, kind, exif=exif))
    page = visit(server)
    choose(page, path)
    page.locator("#threshold").press("End")
    expect(page.locator("#readout")).to_have_text("0 keypoints")
    expect(page.locator("#slot-0")).to_contain_text("300 × 200")
    left, right = (pixel_of(page, {"width": 300, "height": 200}, x, 100) for x in (50, 250))
    assert left[0] > 200 and right[2] > 200, (left, right)


def test_keyboard(server, visit, scenes):
    page = visit(server)
    page.on("filechooser", lambda chooser: chooser.set_files(scenes[0]))
    for _ in range(4):  # brand, two links, button
        page.keyboard.press("Tab")
    expect(page.locator("#pick")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#readout")).to_contain_text("keypoints")
    page.locator("#canvas").focus()
    page.keyboard.press("ArrowRight")
    x, y = detected(server, scenes[0])["keypoints"][0]
    expect(page.locator("#readout")).to_contain_text(f"#1   x {x:.1f}   y {y:.1f}")
    page.keyboard.press("+")
    expect(page.locator("#view")).to_have_class(re.compile("zoomed"))
    page.keyboard.press("0")
    expect(page.locator("#view")).not_to_have_class(re.compile("zoomed"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(server, visit, scenes, scheme):
    page = visit(server, PHONE, color_scheme=scheme, is_mobile=True, has_touch=True)
    choose(page, scenes[0])
    choose(page, scenes[1], "Second photo")
    expect(page.locator("#match-note")).to_contain_text("of ")
    shot = Image.open(io.BytesIO(page.screenshot(full_page=True)))
    assert shot.width == PHONE["width"], "the page is wider than the screen"
    light = sum(shot.convert("RGB").getpixel((2, 400))) / 3
    assert light > 200 if scheme == "light" else light < 50
