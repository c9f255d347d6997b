"""Kills what a kernel is made of, in the middle of what it does, and checks that what survives is what the documents promise.

    make faults                                  # 150 faults
    python tests/faults.py [--faults 150] [--seed 1] [--report FILE]

Killed by SIGKILL: the program of a cell, its launcher, gonb, the device process, the kernel (proxy), the Jupyter server that started it; one or two at
once, in an order and at moments that the seed fixes as far as a seed can. Meanwhile a cell uploads, downloads, computes, checks, draws, loads, saves, prints
or is being built. After each fault: named tensors are whole or gone as promised, declarations are there, the next cell runs, no process is an orphan and no
socket is stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty

import psutil
import requests
from jupyter_client import BlockingKernelClient

from conftest import ATTN, ROOT, Kernel, Result, cmdline

NPZ = ROOT / "notebooks" / "data" / "neox_layer.npz"
LIMIT = 60  # seconds for anything, on a busy machine

PREPARE = ATTN + """
func filled(x float32) []float32 {
	v := make([]float32, 1<<18)
	for i := range v {
		v[i] = x
	}
	return v
}
func uniform(name string) {
	v := attn.Get(name).Download()
	for _, x := range v {
		if x != v[0] || len(v) != 1<<18 {
			panic("half written: " + name)
		}
	}
}
%%
attn.FromSlice(filled(7), "dim", 1<<18).Named("base")
attn.FromSlice(filled(0), "dim", 1<<18).Named("turns")
attn.FromSlice(filled(1)[:4*256*64], "heads seq dim", 4, 256, 64).Named("x")
"""

# What a cell is in the middle of. Each says "up" when it is, and goes on until it is ended.
BUSY = {
    "uploads": 'for i := 1; ; i++ {\n\tattn.FromSlice(filled(float32(i)), "dim", 1<<18).Named("turns")\n}',
    "downloads": 'for {\n\tuniform("base")\n}',
    "computes": 'for {\n\tx := attn.Get("x")\n\tattn.Prefill(x, x, x, attn.Causal).Named("out")\n}',
    "appends": 'for {\n\tx := attn.Get("x")\n\tattn.AppendKV(x, x).Named("out")\n}',
    "checks": 'for {\n\tx := attn.Get("x")\n\tattn.Prefill(x, x, x, attn.Causal).Check()\n}',
    "draws": 'for {\n\tx := attn.Get("x")\n\tattn.Scores(x, x, attn.Causal).Softmax().Heatmap()\n}',
    "loads": f'for {{\n\tattn.Load("{NPZ}", "qkv").Named("out")\n}}',
    "saves": 'for {\n\tattn.Save("KEPT", "base")\n}',
    "prints": 'for i := 0; ; i++ {\n\tfmt.Println(i, "äß€äß€äß€äß€äß€äß€äß€äß€äß€äß€")\n}',
    "sleeps": "time.Sleep(time.Hour)",
}


@dataclass
class Life:
    """A Jupyter server with one kernel, in directories that outlive it."""

    scratch: Path
    server: subprocess.Popen = field(init=False)
    client: BlockingKernelClient = field(init=False)

    def __post_init__(self) -> None:
        self.runtime, self.tmp, self.jupyter = self.scratch / "run", self.scratch / "tmp", self.scratch / "j"
        for d in (self.runtime, self.tmp, self.jupyter):
            d.mkdir(mode=0o700, exist_ok=True)
        for old in self.jupyter.glob("*"):
            old.unlink()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        env = os.environ | {
            "XDG_RUNTIME_DIR": str(self.runtime), "TMPDIR": str(self.tmp), "JUPYTER_RUNTIME_DIR": str(self.jupyter), "JUPYTER_TOKEN": "t",
            "ATTNB_DEVICE": "host",
        }
        self.log = (self.scratch / "server.log").open("ab")
        self.server = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}", f"--ServerApp.root_dir={ROOT}",
             "--KernelManager.transport=ipc", "--KernelRestarter.restart_limit=1000", "--KernelRestarter.time_to_dead=0.5",
             "--MultiKernelManager.default_kernel_name=attnb"],
            env=env, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
        )
        began = time.monotonic()
        while True:
            try:
                made = requests.post(f"http://127.0.0.1:{port}/api/kernels?token=t", json={"name": "attnb"}, timeout=LIMIT)
                break
            except requests.ConnectionError:
                assert time.monotonic() - began < LIMIT and self.server.poll() is None, "the Jupyter server does not start"
                time.sleep(0.1)
        assert made.status_code == 201, made.text
        self.connect(made.json()["id"])

    def connect(self, kernel: str | None = None) -> None:
        if kernel:
            self.file = self.jupyter / f"kernel-{kernel}.json"
        else:
            self.client.stop_channels()
        self.client = BlockingKernelClient(connection_file=str(self.file))
        self.client.load_connection_file()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT)

    processes = Kernel.processes
    finish = Kernel.finish
    run = Kernel.run

    def named(self, what: str) -> list[psutil.Process]:
        found = []
        for p in self.processes():
            try:
                words, name = p.cmdline(), p.name()
                kind = {"kernel": "kernel", "device": "device"}.get(words[1] if len(words) > 1 else "") if name == "attnb" else name
                if name.startswith("gonb_") and words:
                    kind = "cell" if p.exe().endswith(".cell") else "launcher"  # both are called by the launcher's path
                if "jupyter_server" in words:
                    kind = "jupyter"
                if kind == what:
                    found.append(p)
            except psutil.Error:
                continue
        return found

    def wait_for(self, msg_id: str, text: str) -> None:
        while True:
            m = self.client.get_iopub_msg(timeout=LIMIT)
            if m["parent_header"].get("msg_id") == msg_id and m["msg_type"] == "stream" and text in m["content"]["text"]:
                return

    def stale(self) -> list[str]:
        """Sockets on which nobody listens, and directories beyond the one of the kernel that runs."""
        wrong = []
        dirs = [d for d in self.runtime.iterdir() if d.name.startswith("attnb-")]
        if len(dirs) > 1:
            wrong.append(f"{len(dirs)} runtime directories")
        for at in dirs:
            for path in at.rglob("*"):
                if path.is_socket() and "gopls" not in path.name:
                    with socket.socket(socket.AF_UNIX) as s:
                        try:
                            s.connect(str(path))
                        except ConnectionRefusedError:
                            wrong.append(f"stale socket {path.name}")
                        except FileNotFoundError:
                            pass  # it went just now
        return wrong

    def orphans(self) -> list[str]:
        wrong = [f"{len(found)} of {what}" for what, most in (("jupyter", 1), ("kernel", 1), ("device", 1), ("gonb", 1), ("cell", 0), ("launcher", 0))
                 if len(found := self.named(what)) > most]
        mine = set()
        for p in [self.server.pid]:
            try:
                mine |= {p} | {c.pid for c in psutil.Process(p).children(recursive=True)}
            except psutil.Error:
                pass
        return wrong + [f"orphan {p.pid} {' '.join(cmdline(p))[:60]}" for p in self.processes() if p.pid not in mine and p.is_running()]

    def settled(self, look: Callable[[], list[str]], patience: float = 15) -> list[str]:
        deadline = time.monotonic() + patience
        while (wrong := look()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return wrong

    def end(self) -> None:
        self.client.stop_channels()
        self.server.terminate()
        try:
            self.server.wait(30)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.log.close()


class Faults:
    """Injects them, and knows what must then be so."""

    VICTIMS = ["cell", "launcher", "gonb", "device", "kernel", "jupyter"]
    WEIGHTS = [3, 1, 3, 3, 2, 1]

    def __init__(self, seed: int, say: Callable[[str], None]) -> None:
        self.random = random.Random(seed)
        self.say = say
        self.scratch = Path(tempfile.mkdtemp(prefix="kf", dir="/tmp"))
        self.kept = self.scratch / "kept.safetensors"
        self.done: Counter[str] = Counter()
        self.during: Counter[str] = Counter()
        self.recovered: dict[str, list[float]] = {}
        self.wrong: list[str] = []
        self.number = self.files = 0
        self.start()

    def start(self) -> None:
        self.life = Life(self.scratch)
        self.prepare()

    def prepare(self) -> None:
        self.ok(self.life.run(PREPARE))
        self.number += 1
        self.ok(self.life.run(f"func survivor() int {{ return {self.number} }}\n"
                              'var once = attn.Once("once", func() attn.Tensor { return attn.FromSlice([]float32{3}, "dim", 1) })\n%%\n_ = once'))

    def ok(self, r: Result) -> Result:
        assert r.status == "ok", (r.reply.get("ename"), r.reply.get("evalue"), r.text("stderr")[-300:])
        return r

    def patiently(self, code: str, text: str) -> None:
        """The cell, again while what it needs is only just being started."""
        deadline = time.monotonic() + LIMIT
        while True:
            r = self.life.run(code)
            if r.status == "ok" or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        assert r.status == "ok" and r.text() == text, (r.reply.get("ename"), r.reply.get("evalue"), r.text()[-200:], text)

    def inject(self, fixed: list[str] | None = None) -> None:
        what = self.random.choice([*BUSY, "is built"])
        victims = fixed or self.random.choices(self.VICTIMS, self.WEIGHTS)
        if not fixed and self.random.random() < 0.3:
            victims = sorted({*victims, *self.random.choices(self.VICTIMS, self.WEIGHTS)})
        life = self.life
        if what == "is built":
            msg = life.client.execute(f"%%\n_ = {self.random.random()}\ntime.Sleep(time.Hour)")
        else:
            msg = life.client.execute('%%\nfmt.Println("up")\n' + BUSY[what].replace("KEPT", str(self.kept)))
            life.wait_for(msg, "up")
        time.sleep(self.random.random() * 0.3)
        # While a cell is built there is no program, and what is killed instead is gonb.
        processes = [p for v in victims for p in life.named(v)]
        assert what == "is built" or len(processes) == len(victims), (victims, processes)
        processes = processes or life.named("gonb")
        if what == "is built" and not {"gonb", "kernel", "jupyter"} & set(victims):
            victims = [*victims, "gonb"]
            processes += life.named("gonb")
        for p in processes:
            try:
                p.kill()
            except psutil.NoSuchProcess:
                pass
        if set(victims) == {"device"} and what in ("prints", "sleeps"):  # which needs none
            life.client.control_channel.send(life.client.session.msg("interrupt_request", {}))
        label = "+".join(victims)
        self.done[label] += 1
        self.during[what] += 1
        began = time.monotonic()
        try:
            self.check(msg, set(victims), what)
        except (AssertionError, Empty, RuntimeError, TimeoutError) as e:
            raise AssertionError(f"{label} killed while a cell {what}: {e}") from e
        self.recovered.setdefault("jupyter" if "jupyter" in victims else "kernel" if "kernel" in victims else label, []).append(time.monotonic() - began)
        if wrong := life.settled(self.life.orphans) + self.life.settled(self.life.stale):
            self.wrong += [f"{label} killed while a cell {what}: {w}" for w in wrong]

    def check_file(self) -> None:
        """What a cell has saved is the whole of it, if it is there."""
        if self.kept.exists():
            content = self.kept.read_bytes()
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            seal = header["__metadata__"]["sha256"].encode()
            assert hashlib.sha256(content.replace(seal, bytes(b"0" * 64))).hexdigest() == seal.decode(), "half a file"
            self.files += 1

    def check(self, msg: str, victims: set[str], what: str) -> None:
        life = self.life
        self.check_file()
        if "jupyter" in victims:
            life.server.wait(LIMIT)
            left = life.settled(lambda: [f"process {p.pid}: {' '.join(cmdline(p))}" for p in life.processes()], 20)
            assert left == [], left
            dirs = [d for d in life.runtime.iterdir() if d.name.startswith("attnb-")]
            # The kernel cleans up after itself; so does the device process when the kernel was killed too. Else the next start does.
            if dirs and not {"kernel", "device"} <= victims:
                raise AssertionError(f"left: {dirs}")
            life.client.stop_channels()
            life.log.close()
            self.start()
            return
        if "kernel" in victims:
            life.connect()  # Jupyter starts it again
            assert life.run(ATTN + "%%\nfmt.Print(len(attn.Tensors()))").text() == "0"
            self.prepare()
            return
        reply = life.finish(msg, LIMIT).reply
        assert reply["status"] == "error", reply
        if "device" in victims:
            self.patiently(ATTN + "%%\nfmt.Print(survivor(), once.Download())", f"{self.number} [3]")
            lost = life.run('%%\nattn.Get("base")')
            assert lost.status == "error" and "lost" in lost.reply["evalue"] + lost.text("stderr"), lost
            self.ok(life.run(PREPARE))
            return
        self.patiently('%%\nuniform("base")\nuniform("turns")\nfmt.Print(survivor(), once.Download(), attn.Get("base").Download()[9])', f"{self.number} [3] 7")

    def end(self) -> list[str]:
        self.life.end()
        left = self.life.settled(lambda: [f"process {p.pid}" for p in self.life.processes()] + [str(p) for d in (self.life.runtime, self.life.tmp) for p in d.iterdir()])
        return self.wrong + [f"left at the end: {x}" for x in left]

    def close(self) -> None:
        for p in self.life.processes():
            p.kill()
        shutil.rmtree(self.scratch, ignore_errors=True)


def run(faults: int, seed: int, say: Callable[[str], None] = print) -> list[str]:
    """Injects so many, each victim alone first, and returns what was not as promised."""
    f = Faults(seed, say)
    try:
        began = time.monotonic()
        for n in range(faults):
            try:
                f.inject([f.VICTIMS[n]] if n < len(f.VICTIMS) else None)
            except AssertionError as e:
                raise AssertionError(f"fault {n + 1}: {e}") from e
        wrong = f.end()
        say(f"{faults} faults, seed {seed}, in {time.monotonic() - began:.0f} s")
        say("killed: " + ", ".join(f"{n} {k}" for k, n in f.done.most_common()))
        say("while a cell: " + ", ".join(f"{k} {n}" for k, n in f.during.most_common()))
        say(f"a saved file was there after {f.files} of them, and whole")
        for k, times in sorted(f.recovered.items()):
            times.sort()
            say(f"until all was as promised after {k}: median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s ({len(times)})")
        return wrong
    finally:
        f.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path)
    args = parser.parse_args()
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    wrong = run(args.faults, args.seed, say)
    say("\n".join(wrong) or "all as promised: no orphan, no stale socket, no half-written tensor, nothing left")
    if args.report:
        args.report.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
