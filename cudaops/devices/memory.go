package devices

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MemoryVariable bounds, in a program's environment, the memory that its arrays may take together: "8GiB", "512M", "1.5G". K, M, G and
// T are powers of 1024, with or without iB; a plain number is bytes. Empty: no bound but the device's.
const MemoryVariable = "ATTNB_MEMORY"

// ParseMemory reads the value of [MemoryVariable] as a number of bytes, 0 where it is empty.
func ParseMemory(spec string) (int64, error) {
	if spec == "" {
		return 0, nil
	}
	number := strings.TrimSuffix(spec, "iB")
	if number == spec {
		number = strings.TrimSuffix(spec, "B")
	}
	unit := 1.0
	if n := len(number); n > 0 {
		if power := strings.IndexByte("KMGT", number[n-1]); power >= 0 {
			number, unit = number[:n-1], math.Pow(1024, float64(power+1))
		} else if strings.HasSuffix(spec, "iB") {
			number = ""
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if bytes := v * unit; err == nil && bytes >= 1 && bytes < math.MaxInt64 && !strings.ContainsAny(number, "xXpPeE+_ ") {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("%s=%s: want a number of bytes, or one with K, M, G or T, such as 8GiB", MemoryVariable, spec)
}
