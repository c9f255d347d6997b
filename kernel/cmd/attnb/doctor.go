package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/attnb/attnb/cudaops/cuda"
	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/spec"
	"github.com/attnb/attnb/kernel/wire"
)

// examineDevice says what the tensors would live on, and whether the installed kernel has a device process that serves.
func examineDevice(ctx context.Context, h spec.Home) []spec.Finding {
	if far.IsTarget(os.Getenv(devices.Variable)) {
		return append(examineTarget(), examineVersion(ctx, h.Attnb()), examineProcess(ctx, h.Attnb()))
	}
	findings := []spec.Finding{
		setting(devices.Variable, "the first GPU, else the processor", nil),
		setting(devices.MemoryVariable, "as much as the device has", func(v string) error {
			_, err := devices.ParseMemory(v)
			return err
		}),
		examineDriver("/proc/driver/nvidia/version"),
	}
	return append(append(findings, examineBackend()...), examineVersion(ctx, h.Attnb()), examineProcess(ctx, h.Attnb()))
}

// examineTarget says what leads to another machine, of which the device process tells the rest.
func examineTarget() []spec.Finding {
	return []spec.Finding{
		setting(devices.Variable, "", func(v string) error {
			_, err := far.ParseTarget(v)
			return err
		}),
		setting(devices.MemoryVariable, "as that machine has it", func(v string) error {
			_, err := devices.ParseMemory(v)
			return err
		}),
		setting(far.SSHVariable, "ssh", nil),
		setting(far.PathVariable, "the attnb on PATH there, else that of ./install.sh", nil),
		setting(far.GraceVariable, "10m", func(v string) error {
			_, err := far.ParseGrace(v)
			return err
		}),
	}
}

// setting is a variable of the environment as it stands.
func setting(name, unset string, check func(value string) error) spec.Finding {
	f := spec.Finding{Name: name, Detail: os.Getenv(name)}
	if f.Detail == "" {
		f.Detail = "not set: " + unset
	} else if check != nil {
		if err := check(f.Detail); err != nil {
			f.State, f.Detail, f.Cost = spec.Faulty, err.Error(), "no device process: give another value, or none"
		}
	}
	return f
}

func examineDriver(file string) spec.Finding {
	text, err := os.ReadFile(file)
	if err != nil {
		return spec.Finding{Name: "NVIDIA driver", State: spec.Absent, Detail: "no " + file, Cost: "no GPU, unless this is WSL, where the driver is that of Windows"}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return spec.Finding{Name: "NVIDIA driver", Detail: strings.Join(strings.Fields(line), " ")}
}

const onHost = "ops run on the processor: the same results, slower"

// examineBackend opens the device that the settings choose, as a device process would.
func examineBackend() []spec.Finding {
	memory, err := devices.ParseMemory(os.Getenv(devices.MemoryVariable))
	if err != nil {
		return nil // it was said of the setting
	}
	backend, note, err := devices.Open(os.Getenv(devices.Variable), memory)
	if err != nil {
		return []spec.Finding{{Name: "device", State: spec.Faulty, Detail: err.Error(),
			Cost: "no device process, and so no tensors: set " + devices.Variable + " to host or auto"}}
	}
	info := backend.Info()
	backend.Close()
	device := spec.Finding{Name: "device", Detail: fmt.Sprintf("%s, backend %s", info.Device, info.Backend)}
	size := spec.Finding{Name: "memory for tensors", Detail: fmt.Sprintf("%.1f GiB", float64(info.MemoryTotal)/(1<<30))}
	if info.MemoryTotal == 0 {
		size.Detail = "not known"
	}
	if note == "" {
		return []spec.Finding{device, size}
	}
	gpu := spec.Finding{Name: "GPU", State: spec.Absent, Detail: note, Cost: onHost}
	if !cuda.Built {
		gpu.Cost += "; `make build-cuda` in a clone builds one with GPU support"
	}
	return []spec.Finding{gpu, device, size}
}

// examineVersion compares this program with the one that Jupyter starts, for the kernel and for its device process.
func examineVersion(ctx context.Context, attnb string) spec.Finding {
	f := spec.Finding{Name: "version"}
	out, err := exec.CommandContext(ctx, attnb, "version").Output()
	got := strings.TrimSpace(strings.TrimPrefix(string(out), "attnb "))
	switch {
	case err != nil:
		f.State, f.Detail, f.Cost = spec.Faulty, fmt.Sprintf("%s: %v", attnb, err), "Jupyter cannot start the kernel: `attnb install` again"
	case got != version:
		f.State, f.Detail, f.Cost = spec.Faulty, fmt.Sprintf("%s, but %s is %s", version, attnb, got), "kernel and device process would differ: `attnb install` again"
	default:
		f.Detail = fmt.Sprintf("%s, kernel and device process", version)
	}
	return f
}

// processLimit is how long a device process may take to serve: a GPU's first context takes seconds.
const processLimit = 30 * time.Second

// examineProcess starts a device process as the kernel does, and asks for its status.
func examineProcess(ctx context.Context, attnb string) spec.Finding {
	f := spec.Finding{Name: "device process"}
	status, err := tryProcess(ctx, attnb)
	if err != nil {
		f.State, f.Detail, f.Cost = spec.Faulty, err.Error(), "cells that use attn cannot run"
		return f
	}
	f.Detail = fmt.Sprintf("serves %s on %s, protocol %d", status.Backend, status.Device, wire.Version)
	return f
}

func tryProcess(ctx context.Context, attnb string) (status wire.Status, err error) {
	dir, err := os.MkdirTemp("", "attnb-doctor-")
	if err != nil {
		return status, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(ctx, processLimit)
	defer cancel()
	socket := filepath.Join(dir, "s")
	cmd := exec.CommandContext(ctx, attnb, "device", "--socket", socket)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return status, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		conn, err := wire.Dial(socket)
		if err == nil {
			_, err = conn.Do(wire.Request{Kind: wire.KindList}) // a device on another machine takes until it is reached, of which its status says so
			if err == nil {
				status, err = conn.Status()
			}
			err = errors.Join(err, conn.Shutdown(), conn.Close())
			return status, errors.Join(err, <-ended)
		}
		if !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ECONNREFUSED) { // not one that is about to serve
			cancel()
			<-ended
			return status, err
		}
		select {
		case ended := <-ended:
			return status, fmt.Errorf("it ended (%w): %s", errors.Join(ended, ctx.Err()), strings.TrimSpace(said.String()))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
