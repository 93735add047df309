package model

import (
	"maps"
	"math"
	"slices"
)

// Distributions of the jitter, by the names of tc-netem(8).
const (
	Uniform      = "uniform"
	Normal       = "normal"
	Pareto       = "pareto"
	ParetoNormal = "paretonormal"
)

// The tables of netem (iproute2, netem/*.c) end at 4 times the jitter.
const (
	widest      = 4.0
	paretoShape = 3.0
	paretoMean  = 1.5       // of a Pareto distribution of that shape that begins at 1
	paretoScale = 4.0 / 3.0 // near 1 / its standard deviation
)

// distribution is one of jitter: quantile maps a number in [0, 1) to a multiple of jitter_ms, whose least value is least.
type distribution struct {
	quantile func(u float64) float64
	least    float64
}

// distributions are those that can be asked for. Normal has mean 0 and standard deviation 1; the others follow netem's
// tables as they are, which are only roughly so: pareto (mean −0.03, deviation 0.82, median −0.32) is one of shape 3,
// shifted by its mean and cut at 4; paretonormal (−0.02, 0.83, −0.24) is a quarter normal and three quarters pareto.
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

// distributionOf gives the distribution of a name; none is uniform.
func distributionOf(name string) distribution {
	if name == "" {
		name = Uniform
	}
	return distributions[name]
}

// DistributionNames gives the names of all distributions, sorted.
func DistributionNames() []string { return slices.Sorted(maps.Keys(distributions)) }
