package policy

import (
	"fmt"
	"slices"
	"strconv"
)

// Plan is a data plan.
type Plan struct {
	Limit      float64  // bytes from one reset to the next
	ResetDay   int      // day of the month on which a period starts; in shorter months the last day
	Interfaces []string // interfaces and kinds whose bytes count
}

// Counts reports whether the bytes of an interface count.
func (p *Plan) Counts(device string) bool {
	return slices.Contains(p.Interfaces, device) || slices.Contains(p.Interfaces, string(KindOf(device)))
}

// plan parses the data plan.
func (r *reader) plan(f field) *Plan {
	fields, ok := r.mapping(f, "limit", "reset_day", "interfaces")
	if !ok {
		return nil
	}
	plan := &Plan{ResetDay: 1, Interfaces: []string{string(Cellular)}}
	limit, given := fields["limit"]
	if !given {
		r.bad(f.line, f.place, "key 'limit' is missing")
	} else if size, ok := valueOf(r, limit, "the size of the plan, such as 5 GB,", ParseSize); ok {
		if plan.Limit = size; size < 1 {
			r.bad(limit.line, limit.place, "the limit is 0: remove the plan, and the cellular paths from the schemes")
		}
	}
	if day, given := fields["reset_day"]; given {
		plan.ResetDay, _ = valueOf(r, day, "a day of the month (1 to 31)", parseDay)
	}
	if devices, given := fields["interfaces"]; given {
		plan.Interfaces, _ = valuesOf(r, devices, "the name of a path", r.parsePath)
	}
	return plan
}

func parseDay(text string) (int, error) {
	day, err := strconv.Atoi(text)
	if err != nil || day < 1 || day > 31 {
		return 0, fmt.Errorf("%s is not a day of the month (1 to 31)", show(text))
	}
	return day, nil
}
