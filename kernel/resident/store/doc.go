// Package store holds the tensors of the device process: their arrays, names and lifetimes, and the lineage of each. It knows what a tensor
// is (shape, axes, mask, quantity) and what it is called in messages, and neither how ops are done nor who asks.
//
// A tensor lives while a name or a [Client] holds it. A [Node] is a step of lineage: it holds the steps before it, down to the leaves, which
// hold their arrays. Arrays and nodes count references, under the lock of the [Store]; the device is never called with it held.
package store
