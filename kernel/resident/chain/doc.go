// Package chain runs ops, one after another: the table of ops, each on the device and in float64, and a lineage run again, by a [Rerun] on
// the device with other parameters, or by a [Replay] in float64 with a bound and a noise for every cell.
package chain
