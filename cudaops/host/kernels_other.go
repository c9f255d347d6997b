//go:build !amd64

package host

var available = []*kernels{plain}
