// Package far runs the device process on another machine, through the user's own ssh, and keeps the notebook and its files on this one.
//
//	cell, proxy --unix socket--> relay ==ssh host attnb far attach==> attach --unix socket--> keeper --unix socket--> device process
//	|------------- this machine ---------------|                    |-------------------- the other --------------------|
//
// The relay ([Relay]) stands where the device process would, and its clients see no difference. It answers itself what is about this machine (files that
// cells name are read here, and their values sent) and passes all else on, one stream for each connection, over one pipe: the standard input and output of
// ssh. [Attach], which ssh starts, joins that pipe to the keeper, which it starts where there is none. The keeper ([Keep]) is in the process
// of the device: it outlives a lost link, holds the connections that were idle, and ends when its kernel ends or when no link has come for the grace time.
//
// A link begins with a line in each direction, a [Hello] and a [Welcome]; after that it carries yamux streams. A stream begins with the eight bytes of
// its connection's number, by which the keeper finds the connection again that an earlier link carried, or 0, which ends the device process. The keeper
// answers how many requests it has carried under that number; then come requests and answers of package wire.
package far
