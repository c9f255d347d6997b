"""Twelve users of one machine's JupyterHub log in, start servers and run the first notebook at the same time.

    make hub                      # as root: deploy/jupyterhub/setup.sh, then this
    python tests/hub.py --prefix /opt/attnb-hub [--users 12] [--cores 2]

It makes local users, starts the hub with the configuration that is installed, and removes the users at the end. Every cell
must succeed and every check of the notebook pass; each user's tensors must be that user's own, and what another user tries
(the sockets, the directories, the processes, the web) must be refused. Prints figures; the exit status is 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import requests
import websocket

import thief

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "01-first-attention.ipynb"
RUN = Path("/run/attnb-hub")
VERDICT = re.compile(r"(?:Check|Compare) .*: (pass|FAIL),")
ATTN = 'import "github.com/attnb/attnb/kernel/attn"\n'


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@dataclass
class User:
    """A browser's worth of one user."""

    name: str
    password: str
    url: str
    number: int
    session: requests.Session = field(default_factory=requests.Session)
    token: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    pictures: int = 0
    verdicts: list[str] = field(default_factory=list)

    @property
    def uid(self) -> int:
        return pwd.getpwnam(self.name).pw_uid

    def timed(self, what: str, do) -> None:
        began = time.monotonic()
        do()
        self.seconds[what] = time.monotonic() - began

    def log_in(self) -> None:
        self.session.get(f"{self.url}/hub/login", timeout=60).raise_for_status()
        said = self.session.post(
            f"{self.url}/hub/login?next=%2Fhub%2Fhome",
            data={"username": self.name, "password": self.password, "_xsrf": self.session.cookies.get("_xsrf", path="/hub/")}, timeout=120,
        )
        said.raise_for_status()
        assert said.url.endswith("/hub/home"), f"{self.name} is not logged in: {said.url}"
        made = self.session.post(
            f"{self.url}/hub/api/users/{self.name}/tokens", headers={"X-XSRFToken": self.session.cookies.get("_xsrf", path="/hub/")},
            json={"note": "test"}, timeout=60,
        )
        made.raise_for_status()
        self.token = made.json()["token"]

    def api(self, method: str, path: str, **options) -> requests.Response:
        return requests.request(method, self.url + path, headers={"Authorization": f"token {self.token}"}, timeout=120, **options)

    def start_server(self) -> None:
        asked = self.api("POST", f"/hub/api/users/{self.name}/server")
        assert asked.status_code in (201, 202), (asked.status_code, asked.text)
        deadline = time.monotonic() + 300
        while not self.api("GET", f"/hub/api/users/{self.name}").json()["servers"].get("", {}).get("ready"):
            assert time.monotonic() < deadline, f"{self.name}'s server does not start"
            time.sleep(0.5)

    def stop_server(self) -> None:
        asked = self.api("DELETE", f"/hub/api/users/{self.name}/server")
        assert asked.status_code in (202, 204), (asked.status_code, asked.text)

    def start_kernel(self) -> None:
        made = self.api("POST", f"/user/{self.name}/api/kernels", json={"name": "attnb", "path": "notebooks"})
        assert made.status_code == 201, (made.status_code, made.text)
        self.kernel = made.json()["id"]
        self.socket = websocket.create_connection(
            f"{self.url.replace('http', 'ws', 1)}/user/{self.name}/api/kernels/{self.kernel}/channels",
            header=[f"Authorization: token {self.token}"], timeout=300,
        )

    def run(self, code: str) -> list[dict]:
        """Runs a cell, and returns what it published. Fails when the cell does."""
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": self.name, "session": self.kernel,
                  "date": "2020-01-01T00:00:00Z", "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        self.socket.send(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}))
        published: list[dict] = []
        reply, idle = None, False
        while reply is None or not idle:
            got = self.socket.recv()
            if isinstance(got, bytes):  # a message with buffers: its first part is the JSON
                count = int.from_bytes(got[:4], "big")
                offsets = [int.from_bytes(got[4 * (i + 1):4 * (i + 2)], "big") for i in range(count)]
                got = got[offsets[0]:(offsets + [len(got)])[1]]
            message = json.loads(got)
            if message["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            if message["header"]["msg_type"] == "execute_reply":
                reply = message["content"]
            elif message["header"]["msg_type"] == "status":
                idle = message["content"]["execution_state"] == "idle"
            else:
                published.append(message["content"])
        assert reply["status"] == "ok", f"{self.name}: {code[:60]!r}: {reply}"
        return published

    def run_notebook(self, notebook) -> None:
        for cell in notebook.cells:
            if cell.cell_type != "code" or "exercise" in cell.metadata.get("tags", []):
                continue
            for shown in self.run(cell.source):
                data = shown.get("data", {})
                self.pictures += "image/png" in data
                if said := VERDICT.match(data.get("text/plain", "")):
                    self.verdicts.append(said[1])

    def keep(self) -> None:
        """Names a tensor as all users do, with a value of this user's own."""
        self.run(ATTN + f'%%\nattn.FromSlice([]float32{{{self.number}}}, "dim", 1).Named("mine")')

    def own(self) -> str:
        said = self.run(ATTN + '%%\nfmt.Print(attn.Get("mine").Download())')
        return "".join(s.get("text", "") for s in said)


def processes(uid: int) -> list[Path]:
    found = []
    for p in Path("/proc").iterdir():
        try:
            if p.name.isdigit() and p.stat().st_uid == uid and (p / "cmdline").read_bytes():
                found.append(p)
        except OSError:
            continue
    return found


def program(p: Path) -> str:
    words = (p / "cmdline").read_bytes().decode(errors="replace").split("\0")
    name = Path(words[0]).name
    if name == "attnb":
        return {"kernel": "kernel (proxy)", "device": "device process"}.get(words[1], name)
    return "Jupyter server" if "singleuser" in " ".join(words) else name


def memory(uid: int) -> dict[str, tuple[float, float]]:
    """MB of each program of a user: what is its own, and its part of what several share (PSS)."""
    found: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for p in processes(uid):
        try:
            rollup = dict(re.findall(r"^(\w+):\s+(\d+) kB", (p / "smaps_rollup").read_text(), re.MULTILINE))
            private = (int(rollup["Private_Clean"]) + int(rollup["Private_Dirty"])) / 1024
            name, (a, b) = program(p), found[program(p)]
            found[name] = (a + private, b + int(rollup["Pss"]) / 1024)
        except (OSError, KeyError, ValueError):
            continue
    return dict(found)


def steal(user: User, victim: User) -> tuple[int, list[str]]:
    """Tries all that a user could try to reach of another's, and returns how much was tried and what was had."""
    home = Path(pwd.getpwnam(victim.name).pw_dir)
    tries = thief.below(RUN / victim.name) + [t for p in processes(victim.uid) for t in thief.of_process(int(p.name))]
    tries += [f"dir {home}/.cache/attnb-hub", f"dir {home}/.local/share/jupyter", f"read {home}/notebooks/01-first-attention.ipynb"]
    assert sum(t.startswith("socket ") for t in tries) >= 8, tries
    wrong = [line for line in thief.steal(tries, user.uid, pwd.getpwnam(user.name).pw_gid) if not line.startswith("refused ")]
    for path in (f"/user/{victim.name}/api/kernels", f"/user/{victim.name}/api/contents", f"/hub/api/users/{victim.name}"):
        got = user.api("GET", path, allow_redirects=False)
        if got.status_code not in (403, 404):
            wrong.append(f"HAD {path} by the web: {got.status_code}")
    return len(tries) + 3, wrong


def listening(uid: int) -> list[int]:
    """The TCP ports at which a user's processes listen."""
    ports = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and int(words[7]) == uid:
                ports.append(int(words[1].rpartition(":")[2], 16))
    return ports


def at_once(users: list[User], what: str, do) -> float:
    began = time.monotonic()
    barrier = threading.Barrier(len(users))

    def one(user: User) -> None:
        barrier.wait()
        user.timed(what, lambda: do(user))

    with ThreadPoolExecutor(len(users)) as pool:
        list(pool.map(one, users))
    took = time.monotonic() - began
    each = sorted(u.seconds[what] for u in users)
    print(f"{what:22} {took:6.1f} s in all; one user: median {statistics.median(each):.1f} s, longest {each[-1]:.1f} s", flush=True)
    return took


def report_memory(users: list[User]) -> None:
    each = [memory(u.uid) for u in users]
    names = sorted({n for m in each for n in m}, key=lambda n: -max(m.get(n, (0, 0))[1] for m in each))
    print(f"{'MB of one user':22} {'own':>14} {'with its share':>16}   median (most) of {len(users)}")
    for name in names:
        own, pss = ([m.get(name, (0, 0))[i] for m in each] for i in (0, 1))
        print(f"  {name:20} {statistics.median(own):7.0f} ({max(own):4.0f}) {statistics.median(pss):8.0f} ({max(pss):4.0f})")
    totals = [sum(v[1] for v in m.values()) for m in each]
    print(f"  {'in all':20} {'':14} {statistics.median(totals):9.0f} ({max(totals):4.0f})", flush=True)


def serve(users: list[User]) -> list[str]:
    """What all users do, and what came of it that should not have."""
    wrong: list[str] = []
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    at_once(users, "log in", User.log_in)
    at_once(users, "start a server", User.start_server)
    at_once(users, "start a kernel", User.start_kernel)
    at_once(users, "run the notebook", lambda u: u.run_notebook(notebook))
    at_once(users, "run it again", lambda u: u.run_notebook(notebook))
    at_once(users, "name a tensor", User.keep)
    report_memory(users)
    for u in users:
        if u.own() != f"[{u.number}]":
            wrong.append(f"{u.name}'s tensor is {u.own()}, not [{u.number}]")
        if u.verdicts.count("FAIL") != users[0].verdicts.count("FAIL") or u.verdicts.count("pass") < 10 or u.pictures != users[0].pictures:
            wrong.append(f"{u.name}: {u.pictures} pictures, checks {u.verdicts}")
        if len(ports := listening(u.uid)) != 1:  # the server's own, which asks for a token
            wrong.append(f"{u.name} listens on TCP ports {ports}, which every user reaches")
    print(f"each user: {users[0].pictures} pictures, {users[0].verdicts.count('pass')} checks passed, in two runs", flush=True)
    tried = 0
    for user, victim in zip(users, users[1:] + users[:1]):
        n, had = steal(user, victim)
        tried += n
        wrong += [f"{user.name} of {victim.name}: {line}" for line in had]
    print(f"tried to reach another user's: {tried} things, had {sum('HAD' in w for w in wrong)}", flush=True)
    for u in users:
        u.socket.close()
        u.stop_server()
    deadline = time.monotonic() + 60
    while (left := [p for u in users for p in processes(u.uid)]) and time.monotonic() < deadline:
        time.sleep(0.2)
    wrong += [f"left: process {p.name}, {program(p)}" for p in left if p.exists()]
    wrong += [f"left: {RUN / u.name}" for u in users if (RUN / u.name).exists()]
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=Path("/opt/attnb-hub"))
    parser.add_argument("--users", type=int, default=12)
    parser.add_argument("--cores", type=int, default=2)
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("hub.py: making users takes root", file=sys.stderr)
        return 2
    homes = Path(tempfile.mkdtemp(prefix="attnb-homes-"))
    homes.chmod(0o755)
    url = f"http://127.0.0.1:{free_port()}"
    users = [User(f"attnbt{i:02}", secrets.token_urlsafe(12), url, i) for i in range(1, args.users + 1)]
    cores = sorted(os.sched_getaffinity(0))[: args.cores]
    log = homes / "hub.log"
    hub = None
    try:
        for u in users:
            subprocess.run(["useradd", "--create-home", "--base-dir", homes, "--groups", "attnb", "--shell", "/bin/bash", u.name], check=True)
            subprocess.run(["chpasswd"], input=f"{u.name}:{u.password}\n", text=True, check=True)
        env = os.environ | {"ATTNB_HUB_URL": url, "ATTNB_HUB_PORT": str(free_port()), "ATTNB_HUB_PROXY_PORT": str(free_port()), "ATTNB_DEVICE": "host"}
        with log.open("wb") as out:
            hub = subprocess.Popen(
                ["taskset", "--cpu-list", ",".join(map(str, cores)), args.prefix / "venv/bin/jupyterhub", "-f", args.prefix / "etc/jupyterhub_config.py"],
                env=env, stdout=out, stderr=out, cwd=args.prefix / "state",
            )
        deadline = time.monotonic() + 90
        while True:
            try:
                if requests.get(f"{url}/hub/health", timeout=5).ok:
                    break
            except requests.RequestException:
                pass
            if hub.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the hub does not start")
            time.sleep(0.3)
        print(f"{args.users} users, {len(cores)} cores", flush=True)
        wrong = serve(users)
    except Exception:
        print("\n".join(log.read_text(errors="replace").splitlines()[-40:]), file=sys.stderr)
        raise
    finally:
        if hub is not None:
            hub.terminate()
            try:
                hub.wait(30)
            except subprocess.TimeoutExpired:
                hub.kill()
        for u in users:
            for p in processes(u.uid):
                os.kill(int(p.name), signal.SIGKILL)
            subprocess.run(["userdel", u.name], check=False, capture_output=True)
        shutil.rmtree(homes, ignore_errors=True)
    print("\n".join(wrong) or "all right", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
