"""The .safetensors format in a few lines: u64 length of a JSON header, the header, the data, all little-endian."""

import json
import struct

import numpy as np


def write(path, tensors, metadata):
    """Writes f32 arrays under their names."""
    header, place = {"__metadata__": metadata}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [place, place + 4 * value.size]}
        place += 4 * value.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # data begins at a multiple of 8
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            f.write(np.ascontiguousarray(value, "<f4").tobytes())


def read(path):
    """Arrays by name."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(length)), f.read()
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(data[slice(*t["data_offsets"])], "<f4").reshape(t["shape"]).copy() for name, t in header.items()
    }
