package wire

// EnvStreams names the environment variable with the path of the proxy's socket for the streams of programs. A launcher
// connects there before it starts its program and, with one message, sends the nonce and three descriptors: the end
// to write of the program's stdin, and the ends to read of its stdout and stderr. The proxy answers one byte. If that is
// [StreamsTaken], the launcher writes its markers (start, exit) to the connection; those of the program stay in its stdout.
// While an interrupted program writes its stacks, the proxy may send [StreamsEnough], and the launcher then ends it.
// In any other case the launcher leaves the streams as they are.
const EnvStreams = "ATTNB_STREAMS"

// Answers of the proxy.
const (
	StreamsTaken  = 'y'
	StreamsEnough = 'e' // of the stacks
	StreamsLeft   = 'n' // and nobody writes to the program's stdin
)
