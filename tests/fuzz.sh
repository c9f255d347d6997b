#!/usr/bin/env bash
# Runs each fuzz target for a while: tests/fuzz.sh [TIME], 10s each. What one finds is kept under its package's testdata/fuzz, where
# `go test` tries it again for ever. Says how many inputs each has tried, and how many of them it keeps in Go's cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time=${1:-10s}
failed=()
targets=0
while IFS=: read -r file target; do
	package=./$(dirname "$file")
	targets=$((targets + 1))
	if said=$(go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" 2>&1); then
		printf '%-32s %-20s %s\n' "$package" "$target" "$(grep -o 'execs: [0-9]*' <<<"$said" | tail -1), kept $(grep -o 'total: [0-9]*' <<<"$said" | tail -1 | tr -dc 0-9)"
	else
		printf '%s\n' "$said"
		failed+=("$package $target")
	fi
done < <(find . -name '*_test.go' -not -path './.*' -not -path './build/*' -print0 | sort -z | xargs -0 grep -oH '^func Fuzz[A-Za-z]*' | sed 's/func //; s|^\./||')
printf '%d targets, %s each\n' "$targets" "$time"
if ((${#failed[@]})); then
	printf 'FAILED %s\n' "${failed[@]}"
	exit 1
fi
