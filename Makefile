# make help lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build build-cuda kernels test notebooks race nightly soak bench-cell bench-viz bench-gpu bench-scaling hub fuzz faults vuln lint fmt demo lab bundle install uninstall clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## compile every package, bin/attnb and bin/attnb-cell
	go build ./...
	go build -o bin/attnb ./kernel/cmd/attnb
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/attnb-cell ./kernel/cmd/attnb-cell

build-cuda: ## bin/attnb with the CUDA backend (needs a C compiler, nothing of CUDA)
	go run ./cudaops/cuda/shim go build -tags cuda -o bin/attnb ./kernel/cmd/attnb

kernels: ## compile the CUDA kernels again (fetches the compiler; needs no GPU)
	python3 cudaops/kernels/build.py

test: ## every test, as continuous integration runs them
	./install.sh test

notebooks: ## execute every notebook, as it is and with its exercises solved, and compare with what is stored
	./install.sh notebooks

race: ## the Go tests under the race detector (needs a C compiler)
	go test -race ./...

bench-cell: ## what a cell takes, against stock GoNB and ipykernel with matplotlib
	./install.sh bench-cell

bench-viz: ## what pictures take in JupyterLab: from call to picture, a zoom step, a turn of a dial, sizes
	./install.sh bench-viz

USERS ?= 12
hub: ## as root: a JupyterHub for this machine, in /opt/attnb-hub, and USERS users who run the first notebook at once
	deploy/jupyterhub/setup.sh --prefix /opt/attnb-hub
	.venv/bin/python tests/hub.py --prefix /opt/attnb-hub --users $(USERS)

CELLS ?= 2000
bench-gpu: ## the ops on this machine's GPU, next to PyTorch: a table, and JSON in bench/results (bench/gpu.sh where there is no Go)
	go run ./cudaops/cuda/shim go run -tags cuda ./bench/gpu -out bench/results

bench-cpu: ## the ops on this machine's cores, next to PyTorch: a table, and JSON in bench/results
	./install.sh bench-cpu

bench-scaling: ## each op over four decades of sizes on this machine's GPU, next to PyTorch: JSON in bench/results, and its picture
	go run ./cudaops/cuda/shim go run -tags cuda ./bench/gpu -scaling -out bench/results
	go -C bench/plots run . "$$(ls -t $(CURDIR)/bench/results/*-scaling.json | head -1)"

nightly: faults ## what takes too long for every commit: the faults, twenty minutes of cells, every fuzz target for two minutes, the detectives on thousands of cases each, every mutant of the references
	./install.sh soak --minutes 20 --store build/soak.json
	go test ./reference/detect -full
	go test ./reference/mutation -timeout 2h -full
	go test ./kernel/resident -run AuditTime -timed
	tests/fuzz.sh 2m

soak: ## 2,000 cells of all kinds in one kernel: what they leave (CELLS=60 is a short form)
	./install.sh soak --cells $(CELLS)

FUZZTIME ?= 10s
fuzz: ## every fuzz target, FUZZTIME each
	tests/fuzz.sh $(FUZZTIME)

faults: ## 150 times, a part of a kernel is killed in the middle of something: what survives
	./install.sh faults

vuln: ## known faults of what this links (fetches govulncheck and its database)
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

lint: ## gofmt, go vet and golangci-lint (which must be installed)
	@test -z "$$(gofmt -l $$(go list -f '{{.Dir}}' ./...))" || { gofmt -l $$(go list -f '{{.Dir}}' ./...); exit 1; }
	go vet ./...
	golangci-lint run

fmt: ## format the Go code
	gofmt -w $$(go list -f '{{.Dir}}' ./...)

demo: ## execute the first notebook, and write build/demo/
	./install.sh demo

lab: ## open JupyterLab with the kernel and the notebooks
	./install.sh lab

bundle: ## one archive for a machine with Python alone: build/bundle/
	./install.sh bundle

install: ## install the kernel for your own Jupyter
	./install.sh

uninstall: ## remove it
	./install.sh uninstall

clean: ## remove what was set up in this folder
	rm -rf bin build .venv
