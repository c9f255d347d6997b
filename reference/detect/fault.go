package detect

import "strings"

// Kind names a fault. The values are words that a sentence can use.
type Kind string

// Fault is one way in which data departs from its declaration.
type Fault struct {
	Kind   Kind
	Detail string // what was found, and what was declared
	Fix    string // what to change
}

func (f Fault) String() string {
	s := string(f.Kind) + ": " + f.Detail
	if f.Fix != "" {
		s += "; " + f.Fix
	}
	return s
}

// Faults are what distinguishes one explanation from the declaration.
type Faults []Fault

// Has says whether a fault of this kind is among them.
func (f Faults) Has(k Kind) bool {
	for _, fault := range f {
		if fault.Kind == k {
			return true
		}
	}
	return false
}

func (f Faults) String() string {
	parts := make([]string, len(f))
	for i, fault := range f {
		parts[i] = fault.String()
	}
	return strings.Join(parts, "\n")
}

// kinds are the kinds in order, for comparisons and short texts.
func (f Faults) kinds() string {
	parts := make([]string, len(f))
	for i, fault := range f {
		parts[i] = string(fault.Kind)
	}
	return strings.Join(parts, " + ")
}
