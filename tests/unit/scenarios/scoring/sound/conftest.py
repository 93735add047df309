"""A melody of the lab's radio station, and recordings that are made of pieces of it."""

import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mplab.drivers.services import load_service
from mplab.scenarios.base.scoring.sound import Recording

RATE_HZ = 16_000
Part = float | tuple[float, float]
"""Seconds of silence, or a piece of the melody as (from, to) in seconds."""
Heard = Callable[..., Recording]


@pytest.fixture(scope="session")
def station() -> Any:
    """The melody that the radio station plays."""
    load_service("icecast")
    from mplab.services.icecast.service import RADIO

    return RADIO


@pytest.fixture(scope="session")
def source(station: Any) -> NDArray[np.float32]:
    """The melody's samples, as a recorder has them."""
    samples = station.samples().astype(np.float32).reshape(-1, 3).mean(axis=1) / 32768
    return np.asarray(samples, dtype=np.float32)


@pytest.fixture(scope="session")
def described(station: Any) -> dict[str, Any]:
    """The scenarios' description of the melody."""
    description: dict[str, Any] = station.describe()
    return description


@pytest.fixture(scope="session")
def heard(source: NDArray[np.float32]) -> Heard:
    def make(*parts: Part, noise: float = 0.0) -> Recording:
        pieces = [_samples(source, part) for part in parts]
        sound = np.concatenate(pieces)
        if noise:
            sound = sound + np.random.default_rng(1).normal(0, noise, len(sound)).astype(np.float32) * (sound != 0)
        return Recording(sound, RATE_HZ)

    return make


def _samples(source: NDArray[np.float32], part: Part) -> NDArray[np.float32]:
    if isinstance(part, tuple):
        return np.take(source, np.arange(round(part[0] * RATE_HZ), round(part[1] * RATE_HZ)), mode="wrap")
    return np.zeros(round(part * RATE_HZ), dtype=np.float32)


def write_wav(path: Path, recording: Recording, *, channels: int = 1, width: int = 2) -> Path:
    """Write a recording as the phone's sound card does, and return its path."""
    samples = np.repeat(np.round(recording.samples * 32767).astype("<i2"), channels)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(recording.rate_hz)
        file.writeframes(samples.tobytes())
    return path


def metrics(values: Sequence[Any]) -> dict[str, float]:
    """Return metric → value."""
    return {value.metric: value.value for value in values}
