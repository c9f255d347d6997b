"""What is deployed for several users, as far as that can be seen without starting it: `make hub` starts it."""

from __future__ import annotations

import os
import pwd
import re
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from traitlets.config import Config, PyFileConfigLoader

from conftest import ROOT

DEPLOY = ROOT / "deploy"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.delenv("ATTNB_HUB_URL", raising=False)
    return PyFileConfigLoader("jupyterhub_config.py", path=str(DEPLOY / "jupyterhub")).load_config()


def test_users_are_kept_apart(hub: Config) -> None:
    assert hub.JupyterHub.spawner_class == "jupyterhub.spawner.LocalProcessSpawner"  # a uid for each
    assert hub.Spawner.args == ["--KernelManager.transport=ipc"]  # by TCP, everybody hears what a kernel publishes
    assert hub.LocalAuthenticator.allowed_groups == {"attnb"}
    assert hub.JupyterHub.bind_url.startswith("http://127.0.0.1:")


def test_the_directory_for_sockets_is_the_users_own(hub: Config, tmp_path: Path) -> None:
    hook = hub.Spawner.pre_spawn_hook
    hook.__globals__["RUN"] = hub.Spawner.post_stop_hook.__globals__["RUN"] = tmp_path / "run"
    name = pwd.getpwuid(os.getuid()).pw_name
    spawner = SimpleNamespace(user=SimpleNamespace(name=name), environment={})
    own = tmp_path / "run" / name
    for _ in range(2):  # the second time it is there, and open to all
        hook(spawner)
        assert stat.S_IMODE(own.stat().st_mode) == 0o700 and own.stat().st_uid == os.getuid()
        assert spawner.environment == {"XDG_RUNTIME_DIR": str(own), "JUPYTER_RUNTIME_DIR": str(own / "j")}
        own.chmod(0o777)
    hub.Spawner.post_stop_hook(spawner)
    assert not own.exists()


def test_paths_to_sockets_are_short_enough() -> None:
    longest = f"/run/attnb-hub/{'u' * 32}/j/kernel-01234567-0123-0123-0123-0123456789ab-ipc-1"
    assert len(longest) < 108  # the longest name of a user that useradd takes


def test_the_same_releases_as_everywhere() -> None:
    def pins(file: Path) -> dict[str, str]:
        return dict(line.strip().split("==") for line in file.read_text().splitlines() if "==" in line)

    tested = pins(ROOT / "requirements.txt")
    for file in (DEPLOY / "jupyterhub" / "requirements.txt", ROOT / "binder" / "requirements.txt"):
        both = pins(file).keys() & tested.keys()
        assert len(both) >= 2 and all(pins(file)[name] == tested[name] for name in both), file


def test_values_for_kubernetes() -> None:
    values = yaml.safe_load((DEPLOY / "kubernetes" / "values.yaml").read_text())
    container = (DEPLOY / "container" / "Dockerfile").read_text()
    server = values["singleuser"]
    assert server["cmd"] == [re.search(r'CMD \["([^"]+)"', container)[1]]
    gpu = {p["display_name"]: p["kubespawner_override"] for p in server["profileList"]}["GPU"]
    assert gpu["extra_resource_limits"] == {"nvidia.com/gpu": "1"} and gpu["environment"] == {"ATTNB_DEVICE": "cuda"}
    assert values["hub"]["config"]["Authenticator"]["allowed_users"] == []  # nobody is let in by what is copied as it is


@pytest.mark.parametrize("script", ["deploy/jupyterhub/setup.sh", "deploy/jupyterhub/start-server", "binder/postBuild", "install.sh"])
def test_scripts_can_be_run(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    shell = path.read_text().splitlines()[0].split("/")[-1].split()[-1]
    subprocess.run([shell, "-n", path], check=True, timeout=20)
