# SPDX-License-Identifier: Apache-2.0
"""GET /metrics against what was sent."""
import math

from running import encoded, json_body, message, parse_metrics, picture

STAGES = {"queue", "preprocess", "forward", "postprocess", "encode", "total"}


def test_format(server):
    answer = server.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    types, samples = parse_metrics(answer.text)
    assert types["lensing_stage_seconds"] == "histogram" and types["lensing_requests_total"] == "counter"
    assert any(name == "lensing_build_info" and value == 1 for (name, _), value in samples.items())
    for stage in STAGES:
        buckets = []
        for (name, labels), value in samples.items():
            if name == "lensing_stage_seconds_bucket" and ("stage", stage) in labels:
                buckets.append((math.inf if dict(labels)["le"] == "+Inf" else float(dict(labels)["le"]), value))
        assert buckets == sorted(buckets) and [v for _, v in buckets] == sorted(v for _, v in buckets)
        assert buckets[-1] == (math.inf, samples["lensing_stage_seconds_count", (("stage", stage),)])
        assert samples["lensing_stage_seconds_sum", (("stage", stage),)] >= 0


def test_counts(start):
    server = start()
    data = encoded(picture())
    found = sent = 0
    for answer in (
        server.post("/predict_raw", data),
        server.post("/predict_raw?max_keypoints=3", data),
        server.post("/predict", json_body(data), Content_Type="application/json"),
    ):
        found += answer.json["num_keypoints"]
        sent += len(answer.body)
    bad = [server.post("/predict_raw", b"abc"), server.post("/predict_plane?height=1", b"a"), server.get("/nothing/x")]
    bad += [server.get("/predict"), server.raw(message("GET", "/health", X_A="a" * 40_000))]
    sent += sum(len(answer.body) for answer in bad)
    _, samples = parse_metrics(server.get("/metrics").text)

    def requests(route, status):
        return samples.get(("lensing_requests_total", (("route", route), ("status", str(status)))), 0)

    assert requests("/predict_raw", 200) == 2 and requests("/predict_raw", 400) == 1
    assert requests("/predict", 200) == 1 and requests("/predict", 405) == 1
    assert requests("/predict_plane", 400) == 1 and requests("other", 404) == 1 and requests("other", 431) == 1
    assert samples["lensing_keypoints_total", ()] == found
    assert samples["lensing_sent_bytes_total", ()] == sent
    assert samples["lensing_received_bytes_total", ()] == 2 * len(data) + len(json_body(data)) + 3
    assert samples["lensing_stage_seconds_count", (("stage", "forward"),)] == 3
    assert samples["lensing_stage_seconds_count", (("stage", "queue"),)] == 4
    assert samples["lensing_stage_seconds_count", (("stage", "total"),)] == 8
    assert samples["lensing_connections", ()] >= 1 and samples["lensing_queue_length", ()] == 0


def test_strange_targets_make_no_series(server):
    """A client cannot fill the memory with names of its own."""
    before = len(server.metrics()[1])
    for i in range(200):
        assert server.get(f"/nothing{i}").status == 404
    assert len(server.metrics()[1]) <= before + 1
