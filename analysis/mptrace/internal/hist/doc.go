// Package hist summarises long sequences of numbers in bounded memory: moments,
// quantiles and an even sample ([Series]), or frequencies ([Sizes]). Zero
// values are ready for use and allocate nothing before the first number.
package hist
