# SPDX-License-Identifier: Apache-2.0
"""The files that the server brings along, and whether the OpenAPI document knows every route. No browser is needed."""
import json
import re

import pytest

FILES = {
    "/": (["index.html"], "text/html; charset=utf-8"),
    "/page.js": (["matching.js", "numpy_files.js", "exif.js", "street.js", "page.js"], "text/javascript; charset=utf-8"),
    "/style.css": (["style.css"], "text/css; charset=utf-8"),
    "/docs": (["docs.html"], "text/html; charset=utf-8"),
    "/openapi.json": (["openapi.json"], "application/json"),
}
REFERENCE = re.compile(r'\b(?:src|href|action)="([^"]+)"')


@pytest.mark.parametrize("path", FILES)
def test_file(server, root, path):
    names, content_type = FILES[path]
    answer = server.get(path)
    assert answer.status == 200
    assert answer.headers["content-type"] == content_type
    assert answer.body == b"".join((root / "src/server/ui" / name).read_bytes() for name in names)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_page_needs_nothing_from_elsewhere(server, path):
    text = server.get(path).text
    for target in REFERENCE.findall(text):
        assert target.startswith("data:") or server.get("/" + target.removeprefix("./")).status == 200, target
    forbidden = re.search(r"\son\w+=|<style|\sstyle=|<script(?![^>]*\ssrc=)", text)
    assert not forbidden, "Content-Security-Policy"


def test_page_is_small(server):
    assert sum(len(server.get(path).body) for path in ("/", "/page.js", "/style.css")) < 60000


def test_openapi_has_all_routes(server, root):
    table = (root / "src/server/routes.c").read_text()
    routes = set(re.findall(r'\{"(/[^"]*)", "([A-Z]+)"', table))
    document = server.get("/openapi.json").json
    assert document["openapi"] == "3.1.0"
    assert {(path, method.upper()) for path, item in document["paths"].items() for method in item} == routes


def test_openapi_tells_which_routes_are_open(server, root):
    table = (root / "src/server/routes.c").read_text()
    is_open = {path: flag == "1" for path, flag in re.findall(r'\{"(/[^"]*)", "[A-Z]+", \w+, \w+, ([01])\}', table)}
    for path, item in server.get("/openapi.json").json["paths"].items():
        for operation in item.values():
            assert (operation["security"] == []) == is_open[path], path
            assert ("401" in operation["responses"]) != is_open[path], path


def test_openapi_has_the_defaults_of_info(server):
    document = server.get("/openapi.json").json
    info = server.get("/info").json
    parameters = {name: item["schema"] for name, item in document["components"]["parameters"].items()}
    fields = document["components"]["schemas"]["PredictRequest"]["properties"]
    for name, schema in parameters.items():
        assert schema["default"] == info["defaults"][name] == fields[name]["default"]
    for name in ("max_keypoints", "nms_radius"):
        assert parameters[name]["maximum"] == fields[name]["maximum"] == info["limits"][name]


def test_openapi_names_what_is_answered(server):
    """Keys of the answers are those of the document, both ways."""
    schemas = server.get("/openapi.json").json["components"]["schemas"]
    tiny = schemas["PredictRequest"]["properties"]["image"]["examples"][0]
    body = json.dumps({"image": tiny}).encode()
    answer = server.post("/predict", body, Content_Type="application/json").json
    assert list(answer) == list(schemas["Features"]["properties"])
    for path, name in (("/info", "Info"), ("/health", "Health"), ("/v1/models", "Models"), ("/ready", "Ready")):
        assert list(server.get(path).json) == list(schemas[name]["properties"]), path
