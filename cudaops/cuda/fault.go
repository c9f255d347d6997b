//go:build cuda && cudafault

package cuda

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"gorgonia.org/cu"
)

// init lets a whole kernel be tested: after a SIGUSR2 to the device process, the next op has a fault before it.
func init() {
	var due atomic.Bool
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	go func() {
		for range signals {
			due.Store(true)
		}
	}()
	inject = func(b *Backend) {
		if due.Swap(false) {
			_ = b.Fault() // what comes of it shows later
		}
	}
}

// faultKernel begins as every kernel does and writes to address 16, which is nobody's.
const faultKernel = `.version 6.3
.target sm_75
.address_size 64
.visible .entry fault(.param .u64 word, .param .u32 op, .param .u32 reserved) {
	.reg .b64 a;
	.reg .b32 x;
	ld.param.u64 a, [word];
	ld.param.u32 x, [op];
	st.volatile.global.u32 [a], x;
	mov.u64 a, 16;
	st.global.u32 [a], x;
	ret;
}
`

// Fault queues an op that kills the context, as a faulty kernel would. It exists in programs that are built to test faults.
func (b *Backend) Fault() error {
	return b.queue("Fault", func() error {
		m, err := cu.LoadData(faultKernel)
		if err != nil {
			return err
		}
		f, err := m.Function("fault")
		if err != nil {
			return err
		}
		var none struct{ progressParams }
		b.functions["fault"] = f
		return launch(b, "fault", grid{1, 1, 1}, 1, 0, &none)
	})
}
