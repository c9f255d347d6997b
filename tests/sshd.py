"""An ssh server on the loopback interface with keys of its own, for tests of a device process on another machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from jupyter_client.kernelspec import get_kernel_spec

from conftest import KERNEL


MARK = "ATTNB_TEST_SERVER"  # in the environment of what a server starts


def program() -> str | None:
    return shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")


class Server:
    """Lets in whoever runs this. What it starts has a home, so that what is left there can be seen, and computes on cores."""

    def __init__(self) -> None:
        found = program()
        if not found:
            pytest.skip("no sshd: ./install.sh test installs Debian's openssh-server where it may")
        self.dir = Path(tempfile.mkdtemp(prefix="ks", dir="/tmp"))
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.dir / key], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.config = self.dir / "ssh.conf"
        self.config.write_text(
            f"IdentityFile {self.dir}/user\nIdentitiesOnly yes\nIdentityAgent none\nStrictHostKeyChecking yes\n"
            f"UserKnownHostsFile {self.dir}/known\nGlobalKnownHostsFile /dev/null\n"
        )
        (self.dir / "known").write_text(f"[127.0.0.1]:{self.port} {(self.dir / 'host.pub').read_text()}")
        (self.dir / "sshd.conf").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {self.dir}/host\nAuthorizedKeysFile {self.dir}/user.pub\nStrictModes no\nUsePAM no\n"
            f"PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nSetEnv ATTNB_DEVICE=host {MARK}={self.dir}\n"
        )
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates its privileges
        self.process = subprocess.Popen([found, "-D", "-e", "-f", self.dir / "sshd.conf"], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                assert time.monotonic() < deadline, "sshd does not listen"
                time.sleep(0.01)

    @property
    def env(self) -> dict[str, str]:
        """The environment of a kernel whose device process is to run there."""
        return {
            "ATTNB_DEVICE": f"ssh://127.0.0.1:{self.port}",
            "ATTNB_SSH": f"ssh -F {self.config}",
            "ATTNB_FAR": get_kernel_spec(KERNEL).argv[0],
        }

    def devices(self) -> list[psutil.Process]:
        """The device processes that were started by way of this server, oldest first."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.cmdline()[1:3] == ["far", "serve"] and process.environ().get(MARK) == str(self.dir):
                    found.append(process)
            except psutil.Error:
                continue
        return sorted(found, key=lambda p: p.create_time())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir)
