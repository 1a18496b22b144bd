# SPDX-License-Identifier: Apache-2.0
"""Changes of light and camera: exposure, night, shade, blur, sharpening, noise, JPEG. Pictures are float32, 0..1."""
import cv2
import numpy as np


def expose(random, image, strength):
    """Gamma, contrast and brightness."""
    image = np.power(image, np.float32(np.exp(random.uniform(-0.5, 0.5) * strength)))
    mean = image.mean()
    gain = np.float32(np.exp(random.uniform(-0.7, 0.4) * strength))
    return (image - mean) * gain + mean + np.float32(random.uniform(-0.2, 0.2) * strength)


def night(random, image):
    """After sunset: dark things vanish, what is left spans a part of the range, and some lamps are on."""
    image = np.power(np.clip(image, 0, 1), np.float32(random.uniform(1.3, 2.5))) * np.float32(random.uniform(0.25, 0.7))
    height, width = image.shape
    rows, columns = np.ogrid[:height, :width]
    for _ in range(random.integers(0, 4)):
        x, y, radius = random.uniform(0, width), random.uniform(0, height), random.uniform(3, 20)
        lamp = np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * radius ** 2))
        image = image + lamp.astype(np.float32) * np.float32(random.uniform(0.2, 0.9))
    return image


def shade(random, image):
    """A smooth shadow over the picture."""
    height, width = image.shape
    coarse = random.uniform(0.4, 1.3, (3, 4)).astype(np.float32)
    return image * cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def motion_blur(random, image):
    length = int(random.choice([3, 5, 7]))  # odd and symmetric, so that the picture stays where it is
    kernel = np.zeros((length, length), np.float32)
    angle = random.uniform(0, np.pi)
    reach = np.array([np.cos(angle), np.sin(angle)]) * length / 2
    middle = (length - 1) / 2
    ends = np.rint([middle - reach, middle + reach]).astype(int)
    cv2.line(kernel, ends[0].tolist(), ends[1].tolist(), 1.0, 1)
    kernel += kernel[::-1, ::-1]
    return cv2.filter2D(image, -1, kernel / kernel.sum())


def sharpen(random, image):
    """What cameras do, and the warping of a view undid."""
    blurred = cv2.GaussianBlur(image, (0, 0), random.uniform(0.6, 1.2))
    return image + (image - blurred) * np.float32(random.uniform(0.3, 1.5))


def jpeg(random, image, quality):
    encoded = cv2.imencode(".jpg", (image * 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, int(quality)])[1]
    return cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE).astype(np.float32) / 255


def degrade(random, image, strength=1.0):
    """A random mixture of all of them; `strength` scales how far exposure goes and how often the rest happens."""
    light = random.random()
    if light < 0.7:
        image = expose(random, image, strength)
    elif light < 0.7 + 0.13 * strength:
        image = night(random, image)
    if random.random() < 0.3 * strength:
        image = shade(random, image)
    chance = random.random()
    if chance < 0.25:
        image = cv2.GaussianBlur(image, (0, 0), random.uniform(0.3, 1.6))
    elif chance < 0.33:
        image = motion_blur(random, image)
    elif chance < 0.66:
        image = sharpen(random, image)
    if random.random() < 0.6:
        noise = random.standard_normal(image.shape, dtype=np.float32)
        image = image + noise * np.float32(random.uniform(0, 0.05) * strength)
    image = np.clip(image, 0, 1)
    if random.random() < 0.3:
        image = jpeg(random, image, random.integers(25, 91))
    return image.astype(np.float32)
