package host

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// processor is the name that Linux knows the processor by, else the architecture.
func processor() string {
	if name := field("/proc/cpuinfo", "model name"); name != "" {
		return name
	}
	return runtime.GOARCH
}

// physicalMemory is how many bytes the machine has, or the control group that the process runs in; 0 where neither tells. An
// array beyond it would end the process, not the op.
func physicalMemory() int64 {
	kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	total := 1024 * kilobytes
	group, _ := os.ReadFile("/sys/fs/cgroup/memory.max")
	limit, err := strconv.ParseInt(strings.TrimSpace(string(group)), 10, 64)
	if err == nil && limit > 0 && (total == 0 || limit < total) {
		return limit
	}
	return total
}

// field is the value of the first line "name: value" of a file, "" where there is none.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
