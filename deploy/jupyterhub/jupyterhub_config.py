"""JupyterHub for the local users of one machine, with the attnb kernel. setup.sh puts it at PREFIX/etc.

Users log in with their password on this machine (PAM); who is in the group "attnb" may. Each gets a Jupyter server that runs under
the user's own id, which is what keeps tensors apart: SECURITY.md says how.
"""

import os
import pwd
import shutil
from pathlib import Path

PREFIX = Path(__file__).resolve().parent.parent
RUN = Path("/run/attnb-hub")  # a directory for each user, for sockets: paths to them must be short

c = get_config()  # noqa: F821 -- JupyterHub defines it

# Put a web server that speaks TLS in front of it, or give JupyterHub a certificate, before others than this machine reach it.
c.JupyterHub.bind_url = os.environ.get("ATTNB_HUB_URL", "http://127.0.0.1:8000")
c.JupyterHub.hub_port = int(os.environ.get("ATTNB_HUB_PORT", "8081"))
c.JupyterHub.db_url = f"sqlite:///{PREFIX}/state/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = f"{PREFIX}/state/cookie_secret"
c.ConfigurableHTTPProxy.command = [f"{PREFIX}/proxy/node_modules/.bin/configurable-http-proxy"]
c.ConfigurableHTTPProxy.pid_file = f"{PREFIX}/state/proxy.pid"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{os.environ.get('ATTNB_HUB_PROXY_PORT', '8001')}"

c.JupyterHub.authenticator_class = "pam"
c.LocalAuthenticator.allowed_groups = {"attnb"}
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"

c.Spawner.cmd = [f"{PREFIX}/start-server"]
# Kernels are reached by sockets in the user's own directory. By TCP, every user of the machine could read what a kernel publishes:
# the protocol signs messages, but lets anybody subscribe.
c.Spawner.args = ["--KernelManager.transport=ipc"]
c.Spawner.default_url = "/lab/tree/notebooks/01-first-attention.ipynb"
c.Spawner.http_timeout = 120
c.Spawner.start_timeout = 120
# ATTNB_DEVICE and ATTNB_MEMORY choose the device, and what the tensors of one kernel may take of its memory: for all users here.
c.Spawner.env_keep = ["PATH", "LANG", "LC_ALL", "ATTNB_DEVICE", "ATTNB_MEMORY"]


def runtime_dir(spawner) -> None:
    """Makes the user's directory for sockets: only that user can enter it."""
    user = pwd.getpwnam(spawner.user.name)
    RUN.mkdir(mode=0o755, exist_ok=True)
    own = RUN / user.pw_name
    own.mkdir(mode=0o700, exist_ok=True)
    os.chown(own, user.pw_uid, user.pw_gid)
    own.chmod(0o700)
    spawner.environment["XDG_RUNTIME_DIR"] = str(own)
    spawner.environment["JUPYTER_RUNTIME_DIR"] = str(own / "j")


def remove_runtime_dir(spawner) -> None:
    shutil.rmtree(RUN / spawner.user.name, ignore_errors=True)


c.Spawner.pre_spawn_hook = runtime_dir
c.Spawner.post_stop_hook = remove_runtime_dir
