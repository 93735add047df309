package workload

// Default returns the workloads of the whole benchmark, grouped by link profile.
func Default() []string {
	return []string{
		"f:10000", "f:50000", "f:100000", "f:250000", "f:500000", "f:1000000", "f:2000000", "f:5000000", "f:10000000",
		"c:20:4:10000", "c:40:8:50000", "c:50:8:100000", "s:10:10000", "s:20:50000", "s:20:100000",
		"bulk:10000:10000000", "dies:5000000",
		"up/f:10000", "up/f:50000", "up/f:100000", "up/f:250000", "up/f:500000", "up/f:1000000", "up/f:2000000",
		"up/c:20:4:10000", "up/c:40:8:50000", "up/s:10:10000", "up/s:20:50000",
		"up/bulk:10000:4000000", "up/dies:2000000",
		"f:50000@loss1", "f:500000@loss1", "f:2000000@loss1", "c:40:8:50000@loss1",
		"up/f:50000@loss1", "up/f:500000@loss1", "up/f:2000000@loss1",
		"f:100000@r1", "f:500000@r1", "f:2000000@r1", "f:100000@r2", "f:500000@r2", "f:2000000@r2",
		"rate:1500000000", "up/rate:1500000000",
	}
}

// Quick returns a small selection of every kind.
func Quick() []string {
	return []string{
		"f:10000", "f:100000", "f:1000000", "f:5000000", "c:20:4:10000", "c:40:8:50000", "s:10:10000",
		"bulk:10000:5000000", "dies:5000000",
		"up/f:10000", "up/f:100000", "up/f:1000000", "up/c:20:4:10000",
		"f:500000@loss1", "f:2000000@loss1", "f:100000@r2", "rate:500000000",
	}
}
