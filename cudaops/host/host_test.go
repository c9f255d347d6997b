package host_test

import (
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/cudaops/optest"
)

func TestConformance(t *testing.T) {
	optest.Run(t, func(t *testing.T) *cudaops.Device {
		d := cudaops.NewDevice(host.New(host.Options{}))
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	})
}
