package lines

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

// Read passes the lines of files to take, without line ends. A line is valid
// during the call. The error contains file and line, followed by the error of
// take, or by tooLong for a line of more than limit bytes.
func Read(names []string, limit int, tooLong string, take func(line []byte) error) error {
	for _, name := range names {
		if err := read(name, limit, tooLong, take); err != nil {
			return err
		}
	}
	return nil
}

func read(name string, limit int, tooLong string, take func(line []byte) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, limit)
	number := 0
	for in.Scan() {
		number++
		if err := take(in.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: found %w", name, number, err)
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: found %s", name, number+1, tooLong)
	}
	if in.Err() != nil {
		return fmt.Errorf("%s: %w", name, in.Err())
	}
	return nil
}
