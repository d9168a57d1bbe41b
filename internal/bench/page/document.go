package page

import (
	_ "embed"
	"html/template"
)

//go:embed page.html
var text string

var document = template.Must(template.New("page").Parse(text))
