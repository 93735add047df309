package tables

// Exported for TestArrowSchemas: package ends, whose tables it checks, imports
// this package.
var (
	Catalog      = catalog
	ArrowSchemas = arrowSchemas
	Update       = update
)

type Description = description

func Describe[R any](name, doc string) Description { return describe[R](0, name, doc) }
