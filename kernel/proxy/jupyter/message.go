// Package jupyter is the wire format of Jupyter's messaging protocol, version 5.4: framing, signatures and headers.
// The format is documented at https://jupyter-client.readthedocs.io/en/stable/messaging.html.
package jupyter

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ProtocolVersion is the version of the messaging protocol in every header.
const ProtocolVersion = "5.4"

// Errors of Parse.
var (
	ErrGarbage   = errors.New("not a Jupyter message")
	ErrSignature = errors.New("wrong signature")
)

const delimiter = "<IDS|MSG>"

// Header identifies a message. Fields that a client left out are empty.
type Header struct {
	MsgID    string `json:"msg_id"`
	Username string `json:"username"`
	Session  string `json:"session"`
	Type     string `json:"msg_type"`
	Version  string `json:"version"`
	Date     string `json:"date"`
}

// Message is one message. The parts that are copied from one message to another are kept as they came.
type Message struct {
	IDs      [][]byte // routing prefix: the client's identity, or the topic of a publication
	Header   Header
	Raw      json.RawMessage // Header as it came; the parent of what answers this message
	Parent   json.RawMessage
	Metadata json.RawMessage
	Content  json.RawMessage
	Buffers  [][]byte
}

// Codec signs and checks messages.
type Codec struct {
	key     []byte
	session string
}

// NewCodec returns a codec with the key of a connection file; an empty key turns signatures off.
func NewCodec(key string) *Codec {
	return &Codec{key: []byte(key), session: NewID()}
}

// NewID returns a random identifier in the form of a UUID.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (c *Codec) sign(parts [][]byte) []byte {
	if len(c.key) == 0 {
		return nil
	}
	mac := hmac.New(sha256.New, c.key)
	for _, p := range parts {
		mac.Write(p)
	}
	return []byte(hex.EncodeToString(mac.Sum(nil)))
}

// Parse checks the signature and takes the frames apart. All parts of the result are valid
// JSON, and the header is a header; whether the content is what its type asks for, its reader must find out.
func (c *Codec) Parse(frames [][]byte) (*Message, error) {
	at := 0
	for at < len(frames) && string(frames[at]) != delimiter {
		at++
	}
	if len(frames)-at < 6 {
		return nil, fmt.Errorf("%w: %d frames", ErrGarbage, len(frames))
	}
	parts := frames[at+2 : at+6]
	if want := c.sign(parts); want != nil && !hmac.Equal(want, bytes.ToLower(frames[at+1])) {
		return nil, ErrSignature
	}
	m := &Message{IDs: frames[:at], Raw: parts[0], Parent: parts[1], Metadata: parts[2], Content: parts[3], Buffers: frames[at+6:]}
	for i, name := range []string{"header", "parent header", "metadata", "content"} {
		if i == 1 && len(bytes.TrimSpace(parts[i])) == 0 {
			m.Parent = json.RawMessage("{}")
			continue
		}
		if !json.Valid(parts[i]) {
			return nil, fmt.Errorf("%w: the %s is not JSON", ErrGarbage, name)
		}
	}
	if err := json.Unmarshal(m.Raw, &m.Header); err != nil {
		return nil, fmt.Errorf("%w: header: %v", ErrGarbage, err)
	}
	if m.Header.Type == "" {
		return nil, fmt.Errorf("%w: no msg_type", ErrGarbage)
	}
	return m, nil
}

// Frames is the inverse of Parse.
func (c *Codec) Frames(m *Message) [][]byte {
	parts := [][]byte{m.Raw, m.Parent, m.Metadata, m.Content}
	for i := range parts {
		if len(parts[i]) == 0 {
			parts[i] = []byte("{}")
		}
	}
	frames := append([][]byte(nil), m.IDs...)
	frames = append(frames, []byte(delimiter), c.sign(parts))
	frames = append(frames, parts...)
	return append(frames, m.Buffers...)
}

// New makes a message with a fresh header. Content is encoded as JSON; a json.RawMessage is taken as it is. A parent
// of nil leaves the parent header empty.
func (c *Codec) New(kind string, parent *Message, content any) *Message {
	m := &Message{Header: Header{
		MsgID: NewID(), Username: "kernel", Session: c.session, Type: kind, Version: ProtocolVersion,
		Date: time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
	}}
	m.Raw = encode(m.Header)
	if parent != nil {
		m.Parent = parent.Raw
	}
	if raw, ok := content.(json.RawMessage); ok {
		m.Content = raw
	} else {
		m.Content = encode(content)
	}
	return m
}

// encode is for values made of maps, slices, strings, numbers and booleans, which always encode.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("{}")
	}
	return bytes.TrimSpace(b.Bytes())
}
