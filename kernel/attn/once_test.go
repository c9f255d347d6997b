package attn

import "testing"

func TestHashOf(t *testing.T) {
	for _, c := range []struct{ list, name, want string }{
		{"", "q", ""},
		{"q=1", "q", "1"},
		{"q=1", "k", ""},
		{"k=2;q=1", "q", "1"},
		{"a=b=3;a=4", "a=b", "3"},
		{"=5;q=1", "q", "1"},
		{"q=1;=5", "q", "1"},
		{"=5;q=1", "k", "5"},
		{"nonsense;q=1", "q", "1"},
	} {
		if got := hashOf(c.list, c.name); got != c.want {
			t.Errorf("hashOf(%q, %q) = %q, want %q", c.list, c.name, got, c.want)
		}
	}
}
