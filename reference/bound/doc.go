// Package bound runs the ops of package reference over values that carry, for each element, a bound on what a correct f32
// implementation may be off by.
//
// A [Heads] is a float64 truth (Value) and such a bound (Err). An op returns the truth of its result and a bound on
// |f32 result - truth|, given that each f32 input lies within its own bound. So a chain of ops carries the rounding of every
// step, amplified as the steps after it amplify it, and Compare of package parity can judge each cell by itself.
//
// Correct means: every operation rounded to nearest (relative error u = 2^-24), sums in any order and blocking, products fused
// into sums or not, intermediates kept or rounded to f32, softmax in two passes or online over tiles of keys
// (relative to a running maximum), score scale applied to q or to q.k, exponentials to base e or 2; exp, log, cosine and sine
// within 2 ULP, division within 2 ULP; results below 2^-126 may be flushed to 0. It does not mean: products of inputs
// cut to fewer bits (TF32, bf16, f16), or, in a softmax, exp(s - LSE), which has bounds of its own ([Weights]).
//
// The bounds are those of rounding error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 3
// and 4): gamma_n = n u / (1 - n u) for n roundings. They hold for the worst case in every rounding, so that a correct result
// comes to a small fraction of them. Masked and copied cells have bound 0: they must be exact.
package bound
