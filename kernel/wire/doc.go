// Package wire holds what a cell, the proxy and the device process say to each other.
//
// Cell and proxy are clients of the device process, over a unix socket ([Dial], [Conn]). A client sends one
// [Request] and waits for one [Answer]. Each is a frame: a little-endian u32 byte count, then that many bytes, a
// sparse list of tagged fields. Where a message says DataLen, that many raw bytes (little-endian f32) follow its
// frame. No length read from the wire is trusted: frames have a limit, counts are checked against the bytes
// that are there, and memory grows only with what has arrived.
//
// What must appear in program order goes through a cell's stdout as a marker ([AppendMarker], [Scanner]).
//
// A cell links this package at every run. It therefore imports next to nothing.
package wire

// Names of the environment variables that a cell finds.
const (
	EnvSocket = "ATTNB_SOCKET" // path of the device process's socket
	EnvNonce  = "ATTNB_NONCE"  // 32 hex digits, new for each kernel: in every marker, and the token of its sockets
)

// Version of the protocol. Client and server must have the same: both come from one installation.
const Version = 1
