package model

import (
	"maps"
	"math"
	"slices"
)

// Distributions of the jitter, with their names in tc-netem(8).
const (
	Uniform      = "uniform"
	Normal       = "normal"
	Pareto       = "pareto"
	ParetoNormal = "paretonormal"
)

// The tables of netem (iproute2, netem/*.c) end at four times the jitter.
const (
	widest      = 4.0
	paretoShape = 3.0
	paretoMean  = 1.5       // mean of a Pareto distribution of this shape with minimum 1
	paretoScale = 4.0 / 3.0 // approximately 1 / its standard deviation
)

// distribution is a jitter distribution. quantile maps a number in [0, 1) to a multiple of jitter_ms; least is the
// minimum multiple.
type distribution struct {
	quantile func(u float64) float64
	least    float64
}

// distributions lists the supported distributions. Normal has mean 0 and standard deviation 1. The others copy netem's
// tables, which only approximate that: pareto (mean −0.03, deviation 0.82, median −0.32) has shape 3, is shifted by its
// mean and cut at 4; paretonormal (−0.02, 0.83, −0.24) is one quarter normal and three quarters pareto.
var distributions = map[string]distribution{
	Uniform:      {func(u float64) float64 { return 2*u - 1 }, -1},
	Normal:       {normalQuantile, -widest},
	Pareto:       {paretoQuantile, (1 - paretoMean) * paretoScale},
	ParetoNormal: {paretoNormalQuantile, (-widest + 3*(1-paretoMean)*paretoScale) / 4},
}

func normalQuantile(u float64) float64 {
	return min(max(math.Sqrt2*math.Erfinv(2*u-1), -widest), widest)
}

func paretoQuantile(u float64) float64 {
	return min((math.Pow(1-u, -1/paretoShape)-paretoMean)*paretoScale, widest)
}

func paretoNormalQuantile(u float64) float64 { return (normalQuantile(u) + 3*paretoQuantile(u)) / 4 }

// distributionOf returns the distribution with a name; "" means uniform.
func distributionOf(name string) distribution {
	if name == "" {
		name = Uniform
	}
	return distributions[name]
}

// DistributionNames returns the sorted names of all distributions.
func DistributionNames() []string { return slices.Sorted(maps.Keys(distributions)) }
