#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows keypoints through a video or the pictures of a camera, with OpenCV.

    python examples/video.py SOURCE [--out FILE.avi] [--show] [--frames N]

SOURCE is a video file, or the number of a camera. For each frame the keypoints are matched with those of the frame
before, and drawn with the way that they moved. Needs opencv-python.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

import lensing

Frame = npt.NDArray[np.uint8]
GREEN, YELLOW = (0, 255, 0), (0, 255, 255)


def frames(capture: Any) -> Iterator[Frame]:
    while True:
        there, frame = capture.read()
        if not there:
            return
        yield frame


def draw(frame: Frame, features: lensing.Features, matches: lensing.Matches | None) -> Frame:
    """A copy of the frame with its keypoints, and a line from where each one was."""
    picture = frame.copy()
    for x, y in features.keypoints.round().astype(int).tolist():
        cv2.circle(picture, (x, y), 2, YELLOW)
    if matches is not None:
        before, now = (points.round().astype(int).tolist() for points in matches.keypoints)
        for start, end in zip(before, now, strict=True):
            cv2.line(picture, start, end, GREEN)
    return picture


class Output:
    """A video file, which begins with the first frame."""

    def __init__(self, path: str | None, rate: float) -> None:
        self.path, self.rate, self.writer = path, rate, None

    def write(self, frame: Frame) -> None:
        if self.path is None:
            return
        if self.writer is None:
            height, width = frame.shape[:2]
            codec = cv2.VideoWriter.fourcc(*("MJPG" if self.path.endswith(".avi") else "mp4v"))
            self.writer = cv2.VideoWriter(self.path, codec, self.rate, (width, height))
            if not self.writer.isOpened():
                raise SystemExit(f"OpenCV cannot write {self.path}")
        self.writer.write(frame)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.release()


def main() -> None:
    parser = argparse.ArgumentParser(description="Follows keypoints through a video.")
    parser.add_argument("source", help="a video file, or the number of a camera")
    parser.add_argument("--out", help="a video with what is seen: .avi or .mp4")
    parser.add_argument("--show", action="store_true", help="in a window, until q is pressed")
    parser.add_argument("--frames", type=int, help="stop after so many")
    parser.add_argument("--max-keypoints", type=int, default=500)
    parser.add_argument("--weights", help="folder, file or Hugging Face repository; default: those of lensing")
    arguments = parser.parse_args()

    source = arguments.source
    capture = cv2.VideoCapture(int(source) if source.isdecimal() else source)
    if not capture.isOpened():
        raise SystemExit(f"OpenCV cannot open {source}")
    output = Output(arguments.out, capture.get(cv2.CAP_PROP_FPS) or 25.0)
    last, count, matched, start = None, 0, 0, time.perf_counter()
    with lensing.SuperPoint.from_pretrained(arguments.weights) as model:
        for frame in islice(frames(capture), arguments.frames):
            features = model(frame, bgr=True, max_keypoints=arguments.max_keypoints)
            matches = None if last is None else lensing.match(last, features, min_similarity=0.8)
            picture = draw(frame, features, matches)
            output.write(picture)
            if arguments.show:
                cv2.imshow("Lensing", picture)
                if cv2.waitKey(1) == ord("q"):
                    break
            last, count, matched = features, count + 1, matched + (0 if matches is None else len(matches))
    output.close()
    capture.release()
    seconds = time.perf_counter() - start
    average = matched / max(count - 1, 1)
    print(f"{count} frames, {count / seconds:.1f} a second, {average:.0f} keypoints followed from one to the next")


if __name__ == "__main__":
    main()
