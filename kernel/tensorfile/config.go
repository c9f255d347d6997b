package tensorfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

const maxConfig = 1 << 20

// Sizes beyond these are of no model: what is made for a config stays small whatever it says.
const (
	maxLayers = 1 << 10
	maxWidth  = 1 << 20 // heads, dims, hidden
	maxLength = 1 << 27 // positions
)

// config is a JSON object whose fields are asked for by name. The first fault stays in err, and what is asked for after it is zero.
type config struct {
	family string
	within string // "rope_scaling.": what precedes the names of fields in messages
	fields map[string]json.RawMessage
	err    error
}

func readConfig(path string) (*config, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxConfig {
		return nil, fmt.Errorf("%d bytes are more than %d", size, maxConfig)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, errors.New("it could not be read to its end")
	}
	return parseConfig(text)
}

func parseConfig(text []byte) (*config, error) {
	fields, err := object(text)
	if err != nil {
		return nil, err
	}
	return &config{fields: fields}, nil
}

func (c *config) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// has reports whether a field is there and not null.
func (c *config) has(name string) bool {
	value, ok := c.fields[name]
	return ok && string(value) != "null"
}

func (c *config) decode(name string, into any, what string) {
	if c.err != nil || !c.has(name) {
		return
	}
	if json.Unmarshal(c.fields[name], into) != nil {
		c.fail("%s%s is %s, must be %s", c.within, name, brief(c.fields[name]), what)
	}
}

func (c *config) text(name string) (s string) {
	c.decode(name, &s, "a string")
	return s
}

func (c *config) bool(name string, otherwise bool) bool {
	c.decode(name, &otherwise, "true or false")
	return otherwise
}

// count is a whole number from 1 to most; absent or null it is otherwise, and 0 for otherwise says that it must be there.
func (c *config) count(name string, otherwise, most int) int {
	if !c.has(name) && otherwise == 0 {
		c.fail("no %s%s", c.within, name)
	}
	v := float64(otherwise)
	c.decode(name, &v, "a whole number")
	if c.err != nil {
		return 0
	}
	if c.has(name) && !(v >= 1 && v <= float64(most) && v == math.Trunc(v)) {
		c.fail("%s%s is %s, must be a whole number from 1 to %d", c.within, name, brief(c.fields[name]), most)
		return 0
	}
	return int(v)
}

// number is a positive number; absent or null it is otherwise, and 0 for otherwise says that it must be there.
func (c *config) number(name string, otherwise float64) float64 {
	if !c.has(name) && otherwise == 0 {
		c.fail("no %s%s", c.within, name)
	}
	v := otherwise
	c.decode(name, &v, "a number")
	if c.err != nil {
		return 0
	}
	if !(v > 0) || math.IsInf(v, 1) {
		c.fail("%s%s is %s, must be a positive number", c.within, name, brief(c.fields[name]))
		return 0
	}
	return v
}

// object is a field that is one; nil where it is absent, null or empty.
func (c *config) object(name string) *config {
	if c.err != nil || !c.has(name) {
		return nil
	}
	fields, err := object(c.fields[name])
	if err != nil {
		c.fail("%s%s: %v", c.within, name, err)
	}
	if len(fields) == 0 {
		return nil
	}
	return &config{family: c.family, within: name + ".", fields: fields}
}

// brief is a JSON value in a message: one line, and not long.
func brief(value json.RawMessage) string {
	const most = 40
	s := strings.Join(strings.Fields(string(value)), " ")
	if len(s) > most {
		s = fmt.Sprintf("%.40s...", s)
	}
	return s
}
