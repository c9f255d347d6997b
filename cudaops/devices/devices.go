// Package devices chooses the backend that a program computes on: a GPU where there is one, else the processor's cores.
package devices

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/cuda"
	"github.com/attnb/attnb/cudaops/host"
)

// Variable names the device in a program's environment: host, cuda (the first GPU), cuda:N, or auto, which an empty value
// means too.
const Variable = "ATTNB_DEVICE"

// ProductsVariable names how prefills are computed on a GPU ([cuda.ParseProducts]): auto, which an empty value means too, or a way to force.
const ProductsVariable = "ATTNB_PRODUCTS"

// KernelsVariable names the kernels of the host ([host.ParseKernels]): auto, which an empty value means too, or those to force.
const KernelsVariable = "ATTNB_HOST_KERNELS"

// Open opens the device that spec names. memory bounds the bytes that its arrays may take together; 0: no bound but the
// device's. auto takes the first GPU and falls back to the host, with the reason in note; a named GPU that cannot
// be used is an error.
func Open(spec string, memory int64) (b cudaops.Backend, note string, err error) {
	ordinal, auto, err := parse(spec)
	if err != nil {
		return nil, "", err
	}
	if ordinal >= 0 {
		products, err := cuda.ParseProducts(os.Getenv(ProductsVariable))
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", ProductsVariable, err)
		}
		b, err := cuda.Open(ordinal, cuda.Options{Memory: memory, Products: products})
		var none *cuda.UnavailableError
		switch {
		case err == nil:
			return b, "", nil
		case !auto:
			return nil, "", fmt.Errorf("%s=%s: %w", Variable, spec, err)
		case errors.As(err, &none):
			note = none.Reason
		default:
			return nil, "", err
		}
	}
	kernels, err := host.ParseKernels(os.Getenv(KernelsVariable))
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", KernelsVariable, err)
	}
	return host.New(host.Options{Memory: memory, Kernels: kernels}), note, nil
}

// parse reads a spec. A negative ordinal means the host.
func parse(spec string) (ordinal int, auto bool, err error) {
	switch spec {
	case "", "auto":
		return 0, true, nil
	case "host":
		return -1, false, nil
	case "cuda":
		return 0, false, nil
	}
	if number, ok := strings.CutPrefix(spec, "cuda:"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && number == strconv.Itoa(n) {
			return n, false, nil
		}
	}
	return 0, false, fmt.Errorf("%s=%s: want host, cuda, cuda:N or auto", Variable, spec)
}
