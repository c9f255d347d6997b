// Package resident is the device process: it holds the tensors that cells make, and outlives the cells.
//
// [Serve] answers on a unix socket. Connections, requests, tasks and faults are here; what a request asks is done by the packages below:
// store (the tensors), chain (the ops), show (pictures) and judge (checks). A tensor is an array on the device with a shape, axes, and a
// lineage: the op and the inputs that it came from. A tensor lives while a name or a connection holds it. Lineage holds the arrays that
// a chain began with (its leaves), so that [wire.KindCheck] can replay the chain in float64; it does not hold those in between.
package resident
