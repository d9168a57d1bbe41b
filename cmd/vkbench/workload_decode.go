package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"vkcompute/internal/bench/suite"
	"vkcompute/internal/llm"
	"vkcompute/vk"
)

// decodeFlags are those of run that only decode reads.
type decodeFlags struct {
	Shapes    []string `name:"shape" help:"With workload decode: 260K, 15M, 42M or 110M; more than one with commas. Without it: all." placeholder:"NAME"`
	Model     string   `help:"With workload decode: a llama2.c checkpoint to decode with." placeholder:"FILE" type:"path"`
	Tokenizer string   `help:"With --model: its llama2.c tokenizer, to print what it writes." placeholder:"FILE" type:"path"`
}

// check finds what cannot be meant.
func (f *decodeFlags) check(decodes bool) error {
	models := suite.DecodeModels()
	for _, name := range f.Shapes {
		if !slices.ContainsFunc(models, func(m suite.DecodeModel) bool { return m.Name == name }) {
			var known []string
			for _, m := range models {
				known = append(known, m.Name)
			}
			return fmt.Errorf("--shape %s: want %s", name, strings.Join(known, ", "))
		}
	}
	switch {
	case !decodes && (len(f.Shapes) > 0 || f.Model != "" || f.Tokenizer != ""):
		return errors.New("--shape, --model and --tokenizer are for workload decode, which is not among those to run")
	case f.Tokenizer != "" && f.Model == "":
		return errors.New("--tokenizer needs the --model whose tokens it is for")
	case f.Model != "" && len(f.Shapes) > 0:
		return errors.New("--shape chooses among made-up models: not with --model")
	}
	return nil
}

// models are those to decode with, and the tokenizer if there is one.
func (f *decodeFlags) models() ([]suite.DecodeModel, *llm.Tokenizer, error) {
	if f.Model == "" {
		models := suite.DecodeModels()
		if len(f.Shapes) == 0 {
			return models, nil, nil
		}
		return slices.DeleteFunc(models, func(m suite.DecodeModel) bool { return !slices.Contains(f.Shapes, m.Name) }), nil, nil
	}
	m, err := llm.OpenModel(f.Model)
	if err != nil {
		return nil, nil, err
	}
	name := strings.TrimSuffix(filepath.Base(f.Model), filepath.Ext(f.Model))
	models := []suite.DecodeModel{{Name: name, Shape: m.Shape, Model: m}}
	if f.Tokenizer == "" {
		return models, nil, nil
	}
	t, err := llm.OpenTokenizer(f.Tokenizer, m.Vocab)
	return models, t, err
}

func decodeWorkload() workload {
	return workload{
		name: "decode", doc: "tokens of a transformer with a key/value cache: its step rebuilt, cached, and replayed for each token",
		run: runDecode, record: suite.RecordDecode,
	}
}

func runDecode(ctx context.Context, j job) (out outcome, err error) {
	models, tokenizer, err := j.decode.models()
	if err != nil {
		return out, err
	}
	if j.profile != "" && j.decode.Model == "" && len(j.decode.Shapes) == 0 {
		// Minutes each: the kernels are those for the device that is emulated, and run on
		// another.
		var left []string
		for _, m := range models[1:] {
			left = append(left, m.Name)
		}
		out.Warnings = append(out.Warnings, "decode: "+strings.Join(left, ", ")+" left out on an emulated device; --shape NAME decodes with them")
		models = models[:1]
	}
	text := ""
	err = withDevice(j, func(d *vk.Device) error {
		if out.Results, err = suite.Decode(ctx, d, j.options(&out), models); err != nil {
			return err
		}
		if tokenizer == nil || len(out.Unsupported) > 0 {
			return nil
		}
		j.say("writing", 1)
		tokens, err := suite.Generate(ctx, d, models[0].Model)
		text = tokenizer.Text(llm.Begin, tokens)
		return err
	})
	out.explain("decode: one sequence, each token waited for and read; a sequence begins anew after 128. host is the share of the time until\n" +
		"the step was handed to the driver. Made-up weights cost what real ones do.")
	if text != "" {
		table := out.table
		out.table = func(w io.Writer) error {
			if err := table(w); err != nil {
				return err
			}
			_, err := fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(text))
			return err
		}
	}
	return out, err
}
