#!/usr/bin/env python3
"""Compile the kernels with NVRTC into images.zip and tie it to its sources in manifest.json.

  build.py          compile every image, with the pinned NVRTC from PyPI (fetched to build/nvrtc where missing)
  build.py --check  compile the PTX alone and compare its kernels and their parameters with the image's; exit status 3 where there is no NVRTC

Needs neither a GPU nor a driver, toolkit or host compiler. A 12.x compiler, so that the cubins load on any driver of CUDA 12
(525 and later).
"""
import concurrent.futures
import ctypes
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

NVRTC = "nvidia-cuda-nvrtc-cu12==12.9.86"
ARCHITECTURES = ["sm_75", "sm_80", "sm_90a", "compute_90"]  # cubins, and PTX for what comes after
OPTIONS = ["--std=c++17", "--device-as-default-execution-space"]
HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent.parent / "build" / "nvrtc"


def sources():
    return sorted(p for p in HERE.iterdir() if p.suffix in (".cu", ".cuh"))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def find_nvrtc():
    pattern = "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
    for root in [TARGET] + [pathlib.Path(p) for p in sys.path if p]:
        if (root / pattern).exists():
            return ctypes.CDLL(str(root / pattern))
    return None


def install_nvrtc():
    print(f"installing {NVRTC} into {TARGET}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", str(TARGET), NVRTC], check=True)
    return find_nvrtc()


class Compiler:
    def __init__(self, lib):
        self.lib = lib
        lib.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status != 0:
            raise RuntimeError(f"{name}: {self.lib.nvrtcGetErrorString(status).decode()}")

    def version(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def image(self, architecture):
        files = {p.name: p.read_bytes() for p in sources()}
        main = files.pop("all.cu")
        names = (ctypes.c_char_p * len(files))(*(n.encode() for n in files))
        texts = (ctypes.c_char_p * len(files))(*files.values())
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), main, b"all.cu", len(files), texts, names)
        options = [f"--gpu-architecture={architecture}"] + OPTIONS
        array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        status = self.lib.nvrtcCompileProgram(program, len(options), array)
        log = self.text("ProgramLog", program).rstrip(b"\0").decode().strip()
        if log:
            print(log, file=sys.stderr)
        if status != 0:
            raise SystemExit(f"{architecture}: {self.lib.nvrtcGetErrorString(status).decode()}")
        image = self.text("CUBIN" if architecture.startswith("sm_") else "PTX", program)
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return image

    def text(self, what, program):
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw


def manifest(compiler, images):
    return {
        "compiler": f"NVRTC {compiler.version()} ({NVRTC})",
        "options": OPTIONS,
        "sources": {p.name: sha256(p.read_bytes()) for p in sources()},
        "images": {name: sha256(data) for name, data in images.items()},
    }


def write(compiler):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        images = dict(zip(ARCHITECTURES, pool.map(compiler.image, ARCHITECTURES)))
    for name, image in images.items():
        print(f"{name}: {len(image)} bytes", file=sys.stderr)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, data in images.items():
            z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)  # ZipInfo: no date, same bytes each time
    (HERE / "images.zip").write_bytes(packed.getvalue())
    text = json.dumps(manifest(compiler, images), indent=2) + "\n"
    (HERE / "manifest.json").write_text(text)


def interface(ptx):
    """Version, target, and every kernel with its parameters. Of the same source the compiler makes other code each time: it orders, and
    numbers registers, by where things happen to lie in its memory. So code is not compared."""
    text = ptx.rstrip(b"\0").decode()
    return re.findall(r"^\.(?:version|target) .*$", text, re.M) + sorted(re.findall(r"^\.visible \.entry [^)]*\)", text, re.M))


def check(compiler):
    kept = zipfile.ZipFile(HERE / "images.zip").read("compute_90")
    made, want = interface(compiler.image("compute_90")), interface(kept)
    if made != want:
        differing = "\n".join(sorted(set(made) ^ set(want)))
        raise SystemExit(f"the sources make other kernels than the image holds: run make kernels\n{differing}")


def main():
    checking = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not checking:
        raise SystemExit(__doc__)
    lib = find_nvrtc()
    if lib is None and checking:
        print("no NVRTC", file=sys.stderr)
        raise SystemExit(3)
    compiler = Compiler(lib or install_nvrtc())
    check(compiler) if checking else write(compiler)


if __name__ == "__main__":
    main()
