package resident

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// record is what a device process leaves for the next one, in a file: the names that it holds, why they were lost where it knows,
// and what was lost before. It is written whenever a name comes or goes, so that it also serves after a sudden end.
type record struct {
	Names []string          `json:"names,omitempty"`
	Fault string            `json:"fault,omitempty"` // "when the GPU failed in Prefill (cell 7)"
	Lost  map[string]string `json:"lost,omitempty"`  // name: why
}

const suddenEnd = "when the device process ended"

// readRecord returns why each name that an earlier process held was lost.
func readRecord(path string) (map[string]string, error) {
	if path == "" {
		return map[string]string{}, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return map[string]string{}, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return map[string]string{}, fmt.Errorf("%s: %w", path, err)
	}
	lost := r.Lost
	if lost == nil {
		lost = map[string]string{}
	}
	for _, name := range r.Names {
		if lost[name] = r.Fault; r.Fault == "" {
			lost[name] = suddenEnd
		}
	}
	return lost, nil
}

// saveNames writes the record of this process. fault is not nil at its end.
func (s *server) saveNames(fault *FaultError) error {
	if s.record == "" {
		return nil
	}
	s.recordMu.Lock() // a later write holds later names
	defer s.recordMu.Unlock()
	names, lost, changes := s.store.Record()
	r := record{Names: names, Lost: lost}
	if fault != nil {
		r.Fault = fmt.Sprintf("when %s failed in %s", fault.Device, fault.Op)
		if fault.Cell > 0 {
			r.Fault += fmt.Sprintf(" (cell %d)", fault.Cell)
		}
	}
	data, err := json.Marshal(r)
	s.saved = changes
	if err != nil {
		return err
	}
	next := s.record + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.record)
}

// changed says that a name has come or gone since the record was written.
func (s *server) changed() bool {
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	return s.store.NameChanges() != s.saved
}

// keepRecord writes the record where a name has come or gone.
func (s *server) keepRecord() {
	if s.record == "" || !s.changed() {
		return
	}
	if err := s.saveNames(nil); err != nil {
		s.log.Warn("names", "error", err)
	}
}
