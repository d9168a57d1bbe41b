package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Schema is the version of the JSON form. It grows when a field changes its meaning or
// goes; new fields may appear without it.
const Schema = 1

// Report is what a run found.
type Report struct {
	Schema      int         `json:"schema"`
	Environment Environment `json:"environment"`
	// Warnings say what a reader should know before believing the figures.
	Warnings []string `json:"warnings,omitempty"`
	Results  []Result `json:"results"`
	// Unsupported is what was not measured because the device cannot do it. What failed is
	// in no report.
	Unsupported []Unsupported `json:"unsupported,omitempty"`
}

// Unsupported is a case that the device is too small for, or cannot do at all.
type Unsupported struct {
	Workload string `json:"workload"`
	Case     string `json:"case"`
	Reason   string `json:"reason"` // what was wanted, what is there
}

// Environment is where the figures come from.
type Environment struct {
	Device  string `json:"device"`
	Driver  string `json:"driver"` // name and version
	API     string `json:"api"`    // Vulkan version of the device
	Go      string `json:"go"`
	CPU     string `json:"cpu"`
	OS      string `json:"os"`
	Profile string `json:"profile"` // the emulated device; empty: none
	Commit  string `json:"commit"`
	// Setup is how the process was set up for the measurement, where it was.
	Setup string `json:"setup,omitempty"`
}

// Result is a figure with its samples.
type Result struct {
	Workload string    `json:"workload"`
	Case     string    `json:"case"`
	Metric   string    `json:"metric"` // what was measured; wall is time on the host's clock
	Unit     string    `json:"unit"`
	Samples  []float64 `json:"samples"`
	Median   float64   `json:"median"`
	P10      float64   `json:"p10"`
	P90      float64   `json:"p90"`
	Unstable bool      `json:"unstable,omitempty"`
	// Launches and Barriers say what one submission holds, where that is the same in
	// every sample.
	Launches int `json:"launches,omitempty"`
	Barriers int `json:"barriers,omitempty"`
	// Note says what a reader of the figure should know, such as where it was found.
	Note string `json:"note,omitempty"`
	// Reference holds medians of what was measured beside it, by name, in the same unit.
	Reference map[string]float64 `json:"reference,omitempty"`
	// Ratio is the result divided by each reference, round by round.
	Ratio map[string]Ratio `json:"ratio,omitempty"`
}

// Ratio summarises quotients.
type Ratio struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
}

// A figure is kept to the tenth of a nanosecond, a ratio to four places.
func tenths(v float64) float64 { return math.Round(v*10) / 10 }
func places(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// NewResult summarises samples, given in nanoseconds and divided by per.
func NewResult(workload, name, metric, unit string, samples []float64, per float64) Result {
	r := Result{Workload: workload, Case: name, Metric: metric, Unit: unit, Samples: make([]float64, len(samples))}
	for i, s := range samples {
		r.Samples[i] = tenths(s / per)
	}
	s := Summarise(r.Samples)
	r.Median, r.P10, r.P90, r.Unstable = tenths(s.Median), tenths(s.P10), tenths(s.P90), s.Unstable()
	return r
}

// NewFigure summarises samples of any unit, kept to five digits.
func NewFigure(workload, name, metric, unit string, samples []float64) Result {
	r := Result{Workload: workload, Case: name, Metric: metric, Unit: unit, Samples: make([]float64, len(samples))}
	for i, s := range samples {
		r.Samples[i] = digits(s)
	}
	s := Summarise(r.Samples)
	r.Median, r.P10, r.P90, r.Unstable = digits(s.Median), digits(s.P10), digits(s.P90), s.Unstable()
	return r
}

func digits(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Better says which way a figure improves.
type Better int

const (
	Lower Better = iota
	Higher
)

// Better goes by the unit: rates and shares want to be high, times low.
func (r *Result) Better() Better {
	if strings.HasSuffix(r.Unit, "/s") || r.Metric == "accuracy" || r.Metric == "hits" {
		return Higher
	}
	return Lower
}

// Against adds a reference measured in the same rounds.
func (r *Result) Against(name string, other Result) {
	if r.Reference == nil {
		r.Reference, r.Ratio = map[string]float64{}, map[string]Ratio{}
	}
	r.Reference[name] = other.Median
	s := Summarise(Ratios(r.Samples, other.Samples))
	r.Ratio[name] = Ratio{Median: places(s.Median), P10: places(s.P10), P90: places(s.P90)}
}

// Find returns the result of a case, or nil.
func (r *Report) Find(workload, name, metric string) *Result {
	for i := range r.Results {
		if x := &r.Results[i]; x.Workload == workload && x.Case == name && x.Metric == metric {
			return x
		}
	}
	return nil
}

// ErrReport matches errors of a report that is not in order.
var ErrReport = errors.New("bad report")

// Validate reports what is missing or cannot be.
func (r *Report) Validate() error {
	if r.Schema != Schema {
		return fmt.Errorf("%w: schema %d, this program knows %d", ErrReport, r.Schema, Schema)
	}
	seen := map[[3]string]bool{}
	for i := range r.Results {
		x := &r.Results[i]
		key := [3]string{x.Workload, x.Case, x.Metric}
		where := fmt.Sprintf("result %d (%s %s %s)", i, x.Workload, x.Case, x.Metric)
		switch {
		case x.Workload == "" || x.Case == "" || x.Metric == "" || x.Unit == "":
			return fmt.Errorf("%w: %s: workload, case, metric and unit must be named", ErrReport, where)
		case seen[key]:
			return fmt.Errorf("%w: %s appears twice", ErrReport, where)
		case len(x.Samples) == 0:
			return fmt.Errorf("%w: %s has no samples", ErrReport, where)
		}
		seen[key] = true
		for _, v := range append([]float64{x.Median, x.P10, x.P90}, x.Samples...) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%w: %s: %v is no figure", ErrReport, where, v)
			}
		}
		if x.P10 > x.Median || x.Median > x.P90 {
			return fmt.Errorf("%w: %s: percentiles %v, %v, %v are not in order", ErrReport, where, x.P10, x.Median, x.P90)
		}
		for name, v := range x.Reference {
			if !(v > 0) || math.IsInf(v, 0) {
				return fmt.Errorf("%w: %s: reference %s is %v", ErrReport, where, name, v)
			}
		}
	}
	for i, u := range r.Unsupported {
		if u.Workload == "" || u.Case == "" || u.Reason == "" {
			return fmt.Errorf("%w: unsupported case %d: workload, case and reason must be named", ErrReport, i)
		}
	}
	return nil
}

// WriteJSON writes the report, one result a line, so that files can be compared.
func (r *Report) WriteJSON(w io.Writer) error {
	if err := r.Validate(); err != nil {
		return err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	field := func(before string, v any) error {
		b.WriteString(before)
		if err := e.Encode(v); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the encoder's newline
		return nil
	}
	err := field(`{"schema":`, r.Schema)
	err = errors.Join(err, field(",\n"+`"environment":`, r.Environment))
	if len(r.Warnings) > 0 {
		err = errors.Join(err, field(",\n"+`"warnings":`, r.Warnings))
	}
	b.WriteString(",\n" + `"results":[`)
	for i := range r.Results {
		before := ",\n"
		if i == 0 {
			before = "\n"
		}
		err = errors.Join(err, field(before, &r.Results[i]))
	}
	b.WriteString("\n]")
	if len(r.Unsupported) > 0 {
		err = errors.Join(err, field(",\n"+`"unsupported":`, r.Unsupported))
	}
	b.WriteString("}\n")
	if err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(r io.Reader) (*Report, error) {
	var report Report
	if err := json.NewDecoder(r).Decode(&report); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	return &report, report.Validate()
}
