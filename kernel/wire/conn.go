package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// Conn is a client's connection to the device process. Its methods may be called from several goroutines; requests go
// one at a time.
type Conn struct {
	mu sync.Mutex
	f  *os.File
	in *Reader
	// Backend is what the device process said it runs on.
	Backend string
}

// Dial connects to the socket at path and says hello, with the token of the kernel whose environment this is ([EnvNonce]). A process of
// another version, or of another kernel, is an error.
func Dial(path string) (*Conn, error) { return DialAs(path, os.Getenv(EnvNonce)) }

// DialAs is Dial with a token.
func DialAs(path, token string) (*Conn, error) {
	f, err := dialFile(path)
	if err != nil {
		return nil, fmt.Errorf("no device process at %s: %w", path, err)
	}
	c := &Conn{f: f, in: NewReader(f)}
	a, err := c.Do(Request{Kind: KindHello, Number: Version, Name: token})
	if err == nil && a.Number != Version {
		err = fmt.Errorf("the device process speaks version %d, this program version %d", a.Number, Version)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	c.Backend = a.Text
	return c, nil
}

// dialFile connects with bare system calls: package net would cost every cell more than all else that it links.
func dialFile(path string) (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	for {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil && err != syscall.EISCONN {
		syscall.Close(fd)
		return nil, os.NewSyscallError("connect", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Close ends the connection; the device process then frees what only it held.
func (c *Conn) Close() error { return c.f.Close() }

// Do sends a request that carries no data and returns the answer. A failure that the device process reports is an *Error.
func (c *Conn) Do(r Request) (Answer, error) {
	a, _, err := c.exchange(r, nil)
	return a, err
}

// Upload is Do for a request with data.
func (c *Conn) Upload(r Request, data []float32) (Answer, error) {
	r.DataLen = 4 * len(data)
	a, _, err := c.exchange(r, data)
	return a, err
}

// Download is Do for an answer with data.
func (c *Conn) Download(r Request) ([]float32, error) {
	_, data, err := c.exchange(r, nil)
	return data, err
}

func (c *Conn) exchange(r Request, up []float32) (Answer, []float32, error) {
	body := r.Encode()
	if len(body) > MaxFrame {
		return Answer{}, nil, Errorf(Refused, "a request of %d bytes is more than the %d that fit", len(body), MaxFrame)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, data, err := c.roundTrip(body, up)
	if err != nil {
		return Answer{}, nil, fmt.Errorf("lost the device process: %w", err)
	}
	if a.Code != OK {
		return Answer{}, nil, &Error{Code: a.Code, Message: a.Message}
	}
	return a, data, nil
}

func (c *Conn) roundTrip(body []byte, up []float32) (Answer, []float32, error) {
	if err := WriteFrame(c.f, body); err != nil {
		return Answer{}, nil, err
	}
	if len(up) > 0 {
		// A refusal may arrive before all is sent; the device process reads on, so this write ends either way.
		if _, err := c.f.Write(FloatBytes(up)); err != nil {
			return Answer{}, nil, err
		}
	}
	answer, err := ReadFrame(c.in)
	if err == io.EOF {
		err = errors.New("it ended")
	}
	if err != nil {
		return Answer{}, nil, err
	}
	a, err := DecodeAnswer(answer)
	if err != nil || a.DataLen == 0 {
		return a, nil, err
	}
	data, err := ReadFloats(c.in, a.DataLen)
	return a, data, err
}

// Display fetches a display by the ID in its marker; the device process then forgets it.
func (c *Conn) Display(id string) (Display, error) {
	a, err := c.Do(Request{Kind: KindDisplay, Name: id})
	if err != nil {
		return Display{}, err
	}
	if a.Display == nil {
		return Display{}, errMalformed
	}
	return *a.Display, nil
}

// Status describes the device process.
func (c *Conn) Status() (Status, error) {
	a, err := c.Do(Request{Kind: KindStatus})
	if err != nil {
		return Status{}, err
	}
	if a.Status == nil {
		return Status{}, errMalformed
	}
	return *a.Status, nil
}

// Cell tells the device process which cell runs from now on.
func (c *Conn) Cell(number int) error {
	_, err := c.Do(Request{Kind: KindCell, Number: number})
	return err
}

// Interrupt makes the op that runs now, for another client, fail.
func (c *Conn) Interrupt() error {
	_, err := c.Do(Request{Kind: KindInterrupt})
	return err
}

// Shutdown asks the device process to end.
func (c *Conn) Shutdown() error {
	_, err := c.Do(Request{Kind: KindShutdown})
	return err
}
