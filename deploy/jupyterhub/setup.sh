#!/usr/bin/env bash
# Sets up a JupyterHub with the attnb kernel for the local users of one machine. A second run does only what is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
clone=$(cd "$here/../.." && pwd -P)
prefix=/opt/attnb-hub
python=python3
proxy=configurable-http-proxy@5.3.0
group=attnb
hub=yes

usage() {
	cat <<-END
		usage: deploy/jupyterhub/setup.sh [--prefix DIR] [--python PYTHON] [--server-only]

		  --prefix DIR      where everything goes ($prefix)
		  --python PYTHON   a Python 3.10 or newer that every user can run ($python)
		  --server-only     what a user's server takes, without a hub: for a container image

		Needs root, Node.js with npm (for the hub), and a network that reaches the package registries of Python, npm and Go. Everything lies
		below DIR but one group, "$group": its members may log in.
	END
}

say() { printf '==> %s\n' "$*"; }
die() {
	printf 'setup.sh: %s\n' "$*" >&2
	exit 1
}

while (($#)); do
	case $1 in
		--prefix) prefix=${2:?} && shift 2 ;;
		--python) python=${2:?} && shift 2 ;;
		--server-only) hub=no && shift ;;
		-h | --help) usage && exit ;;
		*) usage >&2 && die "unexpected: $1" ;;
	esac
done
[[ $prefix == /* ]] || die "--prefix takes an absolute path"
[[ $(id -u) == 0 ]] || die "a hub that starts servers of several users runs as root"
[[ $hub == no ]] || command -v npm >/dev/null || die "npm is missing (Debian: apt-get install npm)"

# others COMMAND...: as a user who is nobody here
others() { setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"; }
others "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
	die "$python is none that every user can run, or older than 3.10: give another with --python"

umask 022
mkdir -p "$prefix"
[[ -x $prefix/venv/bin/python ]] || {
	say "a virtual environment: $prefix/venv"
	"$python" -m venv "$prefix/venv" || die "$python cannot make one (Debian: apt-get install python3-venv)"
}
say "JupyterHub and JupyterLab"
"$prefix/venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check -r "$here/requirements.txt"
if [[ $hub == yes ]]; then
	say "$proxy"
	npm install --silent --no-fund --no-audit --prefix "$prefix/proxy" "$proxy"
	chmod -R go+rX,go-w "$prefix/proxy"
fi

say "the kernel, in $prefix/venv"
"$clone/install.sh" prefix "$prefix/venv"
others "$prefix/venv/bin/python" -c 'import jupyterhub' || die "other users cannot read $prefix: give another with --prefix"

# The build cache that each user's starts as, and the modules, which all share. Users can read them, and only root can write.
say "what cells are built from, compiled: $prefix/gocache, $prefix/gomod"
export GOCACHE=$prefix/gocache GOMODCACHE=$prefix/gomod
"$prefix/venv/share/attnb/bin/attnb" install --prefix "$prefix/venv" >/dev/null
mkdir -p "$prefix/share/notebooks"
cp -R "$clone/notebooks/." "$prefix/share/notebooks/"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
HOME=$scratch JUPYTER_PATH=$prefix/venv/share/jupyter "$prefix/venv/bin/python" -m nbconvert --log-level=WARN --to notebook --execute \
	--ExecutePreprocessor.kernel_name=attnb --ExecutePreprocessor.timeout=300 --stdout \
	"$prefix/share/notebooks/01-first-attention.ipynb" </dev/null >/dev/null || die "a cell of the first notebook failed: see above"
chmod -R go+rX,go-w "$prefix"/{gocache,gomod,venv,share}

install -m 755 "$here/start-server" "$prefix/start-server"
if [[ $hub == no ]]; then
	say "done. A user's server: $prefix/start-server"
	exit
fi
mkdir -p "$prefix/etc"
install -m 644 "$here/jupyterhub_config.py" "$prefix/etc/jupyterhub_config.py"
mkdir -p "$prefix/state"
chmod 700 "$prefix/state"
getent group "$group" >/dev/null || groupadd --system "$group"

say "done. Let a user in:  usermod --append --groups $group USER"
say "start the hub:        $prefix/venv/bin/jupyterhub -f $prefix/etc/jupyterhub_config.py"
