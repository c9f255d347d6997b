package devices

import "testing"

func TestParseMemory(t *testing.T) {
	for spec, want := range map[string]int64{
		"": 0, "1048576": 1 << 20, "8GiB": 8 << 30, "8G": 8 << 30, "512M": 512 << 20, "512MiB": 512 << 20, "1.5G": 3 << 29, "2TiB": 2 << 40,
		"64K": 64 << 10, "100B": 100, "0.5KiB": 512,
	} {
		if got, err := ParseMemory(spec); err != nil || got != want {
			t.Errorf("ParseMemory(%q) = %d, %v, want %d", spec, got, err, want)
		}
	}
	for _, spec := range []string{"G", "iB", "8iB", "-1", "0", "0.1", "8 GiB", "8gib", "NaN", "Inf", "1e9", "0x10", "99999999T", "8GiBs", "+8G", "1_000"} {
		want := "ATTNB_MEMORY=" + spec + ": want a number of bytes, or one with K, M, G or T, such as 8GiB"
		if got, err := ParseMemory(spec); err == nil || err.Error() != want || got != 0 {
			t.Errorf("ParseMemory(%q) = %d, %v", spec, got, err)
		}
	}
}
