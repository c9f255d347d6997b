package main

import (
	"fmt"
	"io"
	"os"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/cudaops/optest"
)

// deviceSelfTest is `attnb device --self-test`: it runs every op on the device that ATTNB_DEVICE chooses, compares each cell of
// the results with float64, and ends with status 1 when one is off by more than a correct computation can be.
func deviceSelfTest(out, errs io.Writer) int {
	memory, err := devices.ParseMemory(os.Getenv(devices.MemoryVariable))
	if err != nil {
		fmt.Fprintln(errs, "attnb device:", err)
		return 1
	}
	backend, note, err := devices.Open(os.Getenv(devices.Variable), memory)
	if err != nil {
		fmt.Fprintln(errs, "attnb device:", err)
		return 1
	}
	if note != "" {
		fmt.Fprintln(out, "no GPU:", note)
	}
	info := backend.Info()
	fmt.Fprintf(out, "self-test of backend %s on %s, against float64\n", info.Backend, info.Device)
	device := cudaops.NewDevice(backend)
	passed := optest.SelfTest(device, func(l optest.Line) { fmt.Fprintln(out, l) })
	if !passed { // a device that failed is not closed: that may wait for ever
		fmt.Fprintf(out, "FAILED: do not trust %s on this machine\n", info.Backend)
		return 1
	}
	device.Close()
	fmt.Fprintln(out, "passed")
	return 0
}
