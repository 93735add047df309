package lines

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// printer formats the error messages of the schema library.
var printer = message.NewPrinter(language.English)
