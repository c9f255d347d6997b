package wire

import "fmt"

// Code says what kind of failure an answer reports. Zero is success.
type Code uint8

const (
	OK          Code = iota
	BadRequest       // the message itself is malformed or of another version: a fault of the client
	BadInput         // shapes, axes or parameters that do not fit
	NotFound         // no tensor, display or file of that name
	Freed            // the tensor existed and was freed
	OutOfMemory      // the device has no room
	Refused          // understood, but a limit or a permission forbids it
	DeviceFault      // the device failed
	Internal         // a fault of the device process itself
	LinkLost         // the device process is on another machine, which could not be reached: the tensors may be kept there
)

var codeNames = [...]string{"ok", "bad request", "bad input", "not found", "freed", "out of memory", "refused", "device fault", "internal", "link lost"}

func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Error is a failure that the device process reports: one line, naming op and tensors.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
