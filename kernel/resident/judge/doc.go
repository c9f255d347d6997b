// Package judge says whether tensors are right: by their chain in float64 (Check, Audit, Ladder), against other tensors (Compare), and by
// the detectives and laws of package trust (Ask).
package judge
