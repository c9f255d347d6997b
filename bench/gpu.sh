#!/bin/bash
# Tests and measures on a GPU machine that has no Go, from programs built elsewhere:
#
#   bench/gpu.sh build            on the machine with Go: puts the programs into build/gpu
#   bench/gpu.sh run OUT [part..] on the machine with the GPU: logs and the JSON file go to OUT
#
# Parts: test, cells, fault, sanitize, launch, wire, bench, scaling; all of them unless named. ONLY names ops for bench, separated by commas; PEER= leaves
# PyTorch out. Logs but those of bench are packed into logs.tar.gz.
set -uo pipefail
cd "$(dirname "$0")/.."
programs=build/gpu

build() {
	set -e
	mkdir -p "$programs"
	go run ./cudaops/cuda/shim go test -c -ldflags=-s -tags cuda -o "$programs/cuda.test" ./cudaops/cuda
	go run ./cudaops/cuda/shim go test -c -ldflags=-s -tags cuda,cudafault -o "$programs/fault.test" ./cudaops/cuda
	go run ./cudaops/cuda/shim go build -tags cuda -ldflags=-s -o "$programs/bench" ./bench/gpu
	go run ./cudaops/cuda/shim go test -c -ldflags=-s -tags cuda -o "$programs/cells.test" ./kernel/attn
	go run ./cudaops/cuda/shim go test -c -ldflags=-s -tags cuda -o "$programs/resident.test" ./kernel/resident
	CGO_ENABLED=0 go build -ldflags=-s -o "$programs/cell" ./kernel/attn/testdata/cell
}

# report LOG: what a test run says at its end, and what failed.
report() {
	grep -E '^( *--- FAIL|FAIL|PASS|ok|panic:)' "$1" | head -40
	grep -cE '^ *--- PASS' "$1" | sed 's/$/ tests passed/'
	grep -E -A4 '^ *--- FAIL' "$1" | grep -vE '^ *---' | head -40
}

run() {
	local out=$1 failed=0 part
	shift
	mkdir -p "$out"
	nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
	logs=$(mktemp -d)
	for part in ${*:-test cells fault sanitize launch wire bench scaling}; do
		echo "== $part"
		"$part" "$out" || { echo "== $part: exit status $?"; failed=1; }
	done
	tar -C "$logs" -czf "$out/logs.tar.gz" .
	return $failed
}

test() {
	(cd cudaops/cuda && timeout 240 "../../$programs/cuda.test" -test.v) >"$logs/test.log" 2>&1
	local status=$?
	report "$logs/test.log"
	return $status
}

# A whole model from tokens to logits, in a cell, and the attention of models of each kind.
cells() {
	(cd kernel/attn && ATTNB_TEST_CELL="../../$programs/cell" ATTNB_TEST_DEVICE=cuda timeout 120 "../../$programs/cells.test" -test.v -test.run '^(TestForwardPass|TestOpenModel)$') >"$logs/cells.log" 2>&1
	local status=$?
	report "$logs/cells.log"
	grep '4477 logits' "$logs/cells.log"
	return $status
}

fault() {
	(cd cudaops/cuda && timeout 60 "../../$programs/fault.test" -test.v -test.run '^TestFault$') >"$logs/fault.log" 2>&1
	local status=$?
	tail -12 "$logs/fault.log"
	return $status
}

sanitize() {
	local tool status=0
	command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not installed here"; return 0; }
	for tool in memcheck racecheck initcheck synccheck; do
		local tests='TestEveryKernel|TestHardInputs|TestHardCells'
		[ "$tool" = racecheck ] && tests=TestRaces # it takes a hundred times as long
		timeout 150 compute-sanitizer --tool "$tool" --error-exitcode 9 "$programs/cuda.test" -test.v -test.run "^($tests)\$" \
			>"$logs/sanitize-$tool.log" 2>&1 || status=$?
		echo "$tool: $(tail -1 "$logs/sanitize-$tool.log")"
	done
	return $status
}

launch() {
	"$programs/cuda.test" -test.run '^$' -test.bench Launch -test.benchtime 20000x | tee "$logs/launch.log"
	"$programs/cuda.test" -test.run '^$' -test.bench Model -test.benchtime 60x | tee "$logs/model.log"
}

# What moves between a program and the GPU, and what the socket and the bus would allow.
wire() {
	"$programs/cuda.test" -test.run '^$' -test.bench Transfer -test.benchtime 20x | tee "$logs/transfer.log"
	ATTNB_DEVICE=cuda "$programs/resident.test" -test.run '^$' -test.bench Wire -test.benchtime 3x | tee "$logs/wire.log"
}

bench() { measure "$1" bench; }
scaling() { measure "$1" scaling -scaling; }

# measure OUT NAME [argument..]
measure() {
	local out=$1 name=$2
	shift 2
	timeout 500 "$programs/bench" "$@" -out "$out" -only "${ONLY:-}" -peer "${PEER-bench/torch_peer.py}" -products "${PRODUCTS:-}" -commit "$(cat "$programs/commit" 2>/dev/null)" 2>"$out/$name.err" | tee "$out/$name.log"
	local status=$?
	grep -v ' ms$' "$out/$name.err" | tail -20
	return $status
}

case ${1:-} in
build) build && git rev-parse HEAD >"$programs/commit" ;;
run) shift && run "$@" ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
