// Package hist describes long sequences of numbers in little memory: moments,
// quantiles and an even selection of them ([Series]), or how often each came
// ([Sizes]). Zero values are ready for use and hold no storage until the first
// number comes.
package hist
